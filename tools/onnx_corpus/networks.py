"""Small networks of the architectures that people export to ONNX today, with random weights.

Each entry of `NETWORKS` is a function without arguments that returns a `Network`. Sizes are small (a few thousand to
a few hundred thousand weights), so that hundreds of exports with all their quantizations take minutes.
BITTRUE_CORPUS=smallest makes transformers of one narrow layer, whose files are small enough to be kept as tests;
BITTRUE_CORPUS=larger of one layer whose products are long enough to be cut into blocks.
"""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn


@dataclass
class Input:
    """One input: its dimensions (a name is a free one), and what its values are.

    `kind` is "real" (normal), "tokens" (integers from 3, below `high`), "labels" (integers from 0), "mask" (ones, with
    zeros at the end of some rows), or "image" (uniform in [0, 1]). A dimension may be a sum of free ones:
    "past + sequence".
    """

    shape: tuple[int | str, ...]
    kind: str = "real"
    high: int = 100


@dataclass
class Network:
    """A module, its inputs in the order of `forward`, and the sizes that free dimensions take in samples."""

    module: nn.Module
    inputs: dict[str, Input]
    family: str
    free: dict[str, int] = field(
        default_factory=lambda: {"batch": 2, "sequence": 9, "height": 40, "width": 36, "time": 33}
    )


NETWORKS: dict[str, Callable[[], Network]] = {}


def network(make: Callable[[], Network]) -> Callable[[], Network]:
    """Enter `make` under its own name without the underscore in front."""
    NETWORKS[make.__name__.removeprefix("_")] = make
    return make


class Outputs(nn.Module):
    """A model of `transformers` with inputs given by position and tensors as results: what exporters want."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], keep: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names, self.keep = model, names, keep

    def forward(self, *values: torch.Tensor) -> Any:
        result = self.model(**dict(zip(self.names, values, strict=True)))
        return tuple(result[name] for name in self.keep)


_SIZES = {"smallest": (48, 1, 80), "larger": (256, 1, 640)}
WIDTH, LAYERS, INNER = _SIZES.get(os.environ.get("BITTRUE_CORPUS", ""), (64, 2, 96))
TOKENS = {"input_ids": Input(("batch", "sequence"), "tokens"), "attention_mask": Input(("batch", "sequence"), "mask")}
SMALL = {
    "vocab_size": 100,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": INNER,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}

# Of waves, with a short ladder of convolutions in front.
WAVES = {
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": INNER,
    "conv_dim": (16, 24, 32),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
PATCHES = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": INNER,
}


def published(
    cls: str, config: str, options: dict[str, Any], inputs: dict[str, Input], keep: tuple[str, ...], family: str
) -> Network:
    """A model of `transformers` by the names of its classes."""
    import transformers

    made = getattr(transformers, config)(**options)
    made._attn_implementation = options.get("attn_implementation", "eager")
    made._experts_implementation = options.get("experts_implementation", "batched_mm")
    model = getattr(transformers, cls)(made).eval()
    if "use_cache" in inspect.signature(model.forward).parameters:
        model.config.use_cache = False
    return Network(Outputs(model, tuple(inputs), keep), inputs, family)


def encoder(cls: str, config: str, keep: str = "last_hidden_state", **changes: Any) -> Callable[[], Network]:
    """One of tokens and a mask, as `SMALL` says."""
    return lambda: published(cls, config, {**SMALL, **changes}, TOKENS, (keep,), "encoder")


def decoder(cls: str, config: str, keep: str = "logits", **changes: Any) -> Callable[[], Network]:
    """One of tokens and a mask, without a cache."""
    return lambda: published(cls, config, {**SMALL, **changes}, TOKENS, (keep,), "decoder")


def vision(
    cls: str, config: str, keep: str, family: str = "vision transformer", size: int = 32, **options: Any
) -> Callable[[], Network]:
    """One of images."""
    inputs = {"pixel_values": Input(("batch", 3, size, size), "image")}
    return lambda: published(cls, config, {"attn_implementation": "eager", **options}, inputs, (keep,), family)


NETWORKS |= {
    "bert": encoder("BertModel", "BertConfig"),
    "bert_classes": encoder("BertForSequenceClassification", "BertConfig", "logits"),
    "bert_sdpa": encoder("BertModel", "BertConfig", attn_implementation="sdpa"),
    "bert_relu": encoder("BertModel", "BertConfig", hidden_act="relu"),
    "bert_tanh_gelu": encoder("BertModel", "BertConfig", hidden_act="gelu_new"),
    "roberta": encoder("RobertaModel", "RobertaConfig", max_position_embeddings=80),
    "distilbert": encoder(
        "DistilBertModel", "DistilBertConfig", dim=WIDTH, n_layers=LAYERS, n_heads=4, hidden_dim=INNER
    ),
    "electra": encoder("ElectraModel", "ElectraConfig", embedding_size=32),
    "albert": encoder("AlbertModel", "AlbertConfig", embedding_size=32),
    "mpnet": encoder("MPNetModel", "MPNetConfig"),
    "deberta_v2": encoder("DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["p2c", "c2p"]),
    "camembert_tokens": encoder("CamembertForTokenClassification", "CamembertConfig", "logits"),
    "xlm_roberta": encoder("XLMRobertaModel", "XLMRobertaConfig", max_position_embeddings=80),
    "modern_bert": encoder("ModernBertModel", "ModernBertConfig", pad_token_id=0, cls_token_id=1, sep_token_id=2),
    "mobilebert": encoder("MobileBertModel", "MobileBertConfig", embedding_size=WIDTH, intra_bottleneck_size=32),
    "t5_encoder": encoder(
        "T5EncoderModel", "T5Config", d_model=WIDTH, d_kv=WIDTH // 4, d_ff=INNER, num_layers=LAYERS, num_heads=4
    ),
    "t5_gated_encoder": encoder(
        "T5EncoderModel",
        "T5Config",
        d_model=WIDTH,
        d_kv=WIDTH // 4,
        d_ff=INNER,
        num_layers=LAYERS,
        num_heads=4,
        feed_forward_proj="gated-gelu",
    ),
    "gpt2": decoder("GPT2LMHeadModel", "GPT2Config", n_embd=WIDTH, n_layer=LAYERS, n_head=4, n_positions=64),
    "gpt_neo": decoder(
        "GPTNeoForCausalLM",
        "GPTNeoConfig",
        num_layers=LAYERS,
        num_heads=4,
        attention_types=[[["global", "local"][:LAYERS], 1]],
    ),
    "gpt_neox": decoder("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "opt": decoder("OPTForCausalLM", "OPTConfig", ffn_dim=INNER, word_embed_proj_dim=WIDTH),
    "bloom": decoder("BloomForCausalLM", "BloomConfig", n_layer=LAYERS, n_head=4),
    "llama": decoder("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2),
    "llama_sdpa": decoder("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, attn_implementation="sdpa"),
    "mistral": decoder("MistralForCausalLM", "MistralConfig", num_key_value_heads=2, sliding_window=8),
    "qwen2": decoder("Qwen2ForCausalLM", "Qwen2Config", num_key_value_heads=2),
    "qwen3": decoder("Qwen3ForCausalLM", "Qwen3Config", num_key_value_heads=2, head_dim=WIDTH // 4),
    "gemma": decoder("GemmaForCausalLM", "GemmaConfig", num_key_value_heads=1, head_dim=WIDTH // 4),
    "phi": decoder("PhiForCausalLM", "PhiConfig"),
    "vit": vision("ViTForImageClassification", "ViTConfig", "logits", num_labels=10, **PATCHES),
    "deit": vision("DeiTModel", "DeiTConfig", "last_hidden_state", **PATCHES),
    "beit": vision("BeitModel", "BeitConfig", "last_hidden_state", **PATCHES),
    "swin": vision(
        "SwinModel",
        "SwinConfig",
        "last_hidden_state",
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "segformer": vision(
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        "logits",
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[4, 2],
        hidden_sizes=[16, 32],
        patch_sizes=[7, 3],
        strides=[4, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=32,
        num_labels=5,
    ),
    "convnext": vision(
        "ConvNextModel", "ConvNextConfig", "last_hidden_state", depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 40]
    ),
    "dinov2": vision("Dinov2Model", "Dinov2Config", "last_hidden_state", **PATCHES),
    "mobilevit": vision(
        "MobileViTModel",
        "MobileViTConfig",
        "last_hidden_state",
        image_size=64,
        size=64,
        hidden_sizes=[24, 32, 40],
        neck_hidden_sizes=[8, 16, 24, 32, 40, 48, 64],
        num_attention_heads=4,
    ),
    "clip_vision": vision("CLIPVisionModel", "CLIPVisionConfig", "last_hidden_state", **PATCHES),
    "clip_text": encoder("CLIPTextModel", "CLIPTextConfig"),
    "siglip_vision": vision("SiglipVisionModel", "SiglipVisionConfig", "last_hidden_state", **PATCHES),
}


@network
def _whisper_encoder() -> Network:
    import transformers

    config = transformers.WhisperConfig(
        d_model=WIDTH,
        encoder_layers=LAYERS,
        encoder_attention_heads=4,
        encoder_ffn_dim=INNER,
        num_mel_bins=20,
        max_source_positions=40,
    )
    config._attn_implementation = "eager"
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return Network(
        Outputs(WhisperEncoder(config).eval(), ("input_features",), ("last_hidden_state",)),
        {"input_features": Input(("batch", 20, 80))},
        "audio",
    )


@network
def _wav2vec2() -> Network:
    return published(
        "Wav2Vec2Model",
        "Wav2Vec2Config",
        WAVES,
        {"input_values": Input(("batch", 800))},
        ("last_hidden_state",),
        "audio",
    )


class Tagger(nn.Module):
    """Tokens through a recurrent layer to a class per token."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.embedding, self.layer, self.head = nn.Embedding(100, 24), layer, nn.Linear(width, 7)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(tokens))[0])


def _tagger(kind: type, bidirectional: bool) -> Callable[[], Network]:
    def make() -> Network:
        layer = kind(24, 20, batch_first=True, bidirectional=bidirectional)
        tokens = {"tokens": Input((1, "sequence"), "tokens")}
        return Network(Tagger(layer, 40 if bidirectional else 20).eval(), tokens, "recurrent")

    return make


NETWORKS |= {
    "lstm": _tagger(nn.LSTM, False),
    "lstm_both_ways": _tagger(nn.LSTM, True),
    "gru": _tagger(nn.GRU, False),
    "gru_both_ways": _tagger(nn.GRU, True),
    "rnn": _tagger(nn.RNN, False),
}


def torchvision_network(name: str, size: int = 64, **options: Any) -> Callable[[], Network]:
    """One of torchvision's, with ten classes."""

    def make() -> Network:
        import torchvision

        made = getattr(torchvision.models, name)(weights=None, num_classes=10, **options).eval()
        return Network(made, {"image": Input(("batch", 3, size, size), "image")}, "CNN")

    return make


def timm_network(name: str, size: int = 64, **options: Any) -> Callable[[], Network]:
    """One of timm's, with ten classes."""

    def make() -> Network:
        import timm

        made = timm.create_model(name, pretrained=False, num_classes=10, **options).eval()
        return Network(made, {"image": Input(("batch", 3, size, size), "image")}, "CNN")

    return make


NETWORKS |= {
    "mobilenet_v2": torchvision_network("mobilenet_v2", width_mult=0.35),
    "mobilenet_v3": torchvision_network("mobilenet_v3_small", reduced_tail=True),
    "shufflenet": torchvision_network("shufflenet_v2_x0_5"),
    "squeezenet": torchvision_network("squeezenet1_1"),
    "mnasnet": torchvision_network("mnasnet0_5"),
    "resnet": timm_network("resnet10t"),
    "repvgg": timm_network("mobileone_s0"),
    "ghostnet": timm_network("ghostnet_050"),
    "efficientnet_lite": timm_network("tf_efficientnet_lite0"),
    "lcnet": timm_network("lcnet_035"),
    "hardcorenas": timm_network("tinynet_e"),
    "edgenext": timm_network("edgenext_xx_small"),
    "mixer": timm_network("mixer_s32_224", 32, img_size=32, num_blocks=2, embed_dim=64),
    "poolformer": timm_network("poolformerv2_s12"),
}


class Sequence(nn.Module):
    """PyTorch's own encoder of transformers, behind a linear layer."""

    def __init__(self, activation: str, norm_first: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(48, 4, 80, activation=activation, norm_first=norm_first, batch_first=True)
        self.entry = nn.Linear(20, 48)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.entry(x))


@network
def _torch_encoder() -> Network:
    return Network(Sequence("relu", False).eval(), {"x": Input(("batch", 12, 20))}, "encoder")


@network
def _torch_encoder_norm_first() -> Network:
    return Network(Sequence("gelu", True).eval(), {"x": Input(("batch", 12, 20))}, "encoder")


class UNet(nn.Module):
    """Down, up by transposed convolution, joined."""

    def __init__(self, up: nn.Module) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.b = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.up, self.end = up, nn.Conv2d(8 + (8 if isinstance(up, nn.ConvTranspose2d) else 16), 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        a = self.a(x)
        return torch.sigmoid(self.end(torch.cat([a, self.up(self.b(a))], 1)))


@network
def _unet_transposed() -> Network:
    return Network(UNet(nn.ConvTranspose2d(16, 8, 2, 2)).eval(), {"image": Input(("batch", 3, 32, 32), "image")}, "CNN")


@network
def _unet_bilinear() -> Network:
    up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
    return Network(UNet(up).eval(), {"image": Input(("batch", 3, 32, 32), "image")}, "CNN")


@network
def _unet_cubic() -> Network:
    up = nn.Upsample(scale_factor=2, mode="bicubic", align_corners=False)
    return Network(UNet(up).eval(), {"image": Input(("batch", 3, 32, 32), "image")}, "CNN")


@network
def _super_resolution() -> Network:
    layers = [
        nn.Conv2d(1, 16, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(16, 12, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(12, 9, 3, padding=1),
    ]
    module = nn.Sequential(*layers, nn.PixelShuffle(3)).eval()
    return Network(module, {"image": Input(("batch", 1, "height", "width"), "image")}, "CNN")


@network
def _generator() -> Network:
    module = nn.Sequential(
        nn.ConvTranspose2d(24, 16, 4, 1, 0),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 8, 4, 2, 1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 3, 4, 2, 1),
        nn.Tanh(),
    ).eval()
    return Network(module, {"noise": Input(("batch", 24, 1, 1))}, "CNN")


class Separator(nn.Module):
    """One-dimensional convolutions with group normalization and PReLU, as Conv-TasNet has them."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, 16, 8, stride=4)
        blocks = [
            nn.Sequential(
                nn.Conv1d(16, 24, 1), nn.PReLU(), nn.GroupNorm(1, 24), nn.Conv1d(24, 16, 3, padding=d, dilation=d)
            )
            for d in (1, 2)
        ]
        self.blocks, self.decode = nn.ModuleList(blocks), nn.ConvTranspose1d(16, 1, 8, stride=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = features = self.encode(x)
        for block in self.blocks:
            features = features + block(features)
        return self.decode(code * torch.sigmoid(features))


@network
def _separator() -> Network:
    return Network(Separator().eval(), {"wave": Input(("batch", 1, 200))}, "audio")


@network
def _keyword_convolutions() -> Network:
    layers: list[nn.Module] = [nn.Conv2d(1, 16, (10, 4), (2, 2), (4, 1)), nn.BatchNorm2d(16), nn.ReLU()]
    for _ in range(2):
        layers += [
            nn.Conv2d(16, 16, 3, padding=1, groups=16),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
            nn.Conv2d(16, 16, 1),
            nn.SiLU(),
        ]
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 12), nn.LogSoftmax(-1)).eval()
    return Network(module, {"spectrum": Input(("batch", 1, 49, 10))}, "audio")


@network
def _perceptron() -> Network:
    module = nn.Sequential(
        nn.Linear(40, 64),
        nn.ELU(),
        nn.Linear(64, 64),
        nn.LeakyReLU(0.1),
        nn.Linear(64, 32),
        nn.Softplus(),
        nn.Linear(32, 40),
        nn.Sigmoid(),
    ).eval()
    return Network(module, {"x": Input(("batch", 40))}, "CNN")


class CachedAttention(nn.Module):
    """One decoding step over a cache of keys and values that grows."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out, self.norm = nn.Linear(48, 144), nn.Linear(48, 48), nn.LayerNorm(48)

    def forward(self, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Any:
        q, k, v = self.project(self.norm(x)).chunk(3, -1)

        def heads(t: torch.Tensor) -> torch.Tensor:
            return t.unflatten(-1, (4, 12)).transpose(1, 2)

        keys, values = torch.cat([keys, heads(k)], 2), torch.cat([values, heads(v)], 2)
        mixed = nn.functional.softmax(heads(q) @ keys.transpose(-1, -2) / 12**0.5, -1) @ values
        return x + self.out(mixed.transpose(1, 2).flatten(2)), keys, values


@network
def _cached_attention() -> Network:
    cache = Input(("batch", 4, "past", 12))
    made = Network(CachedAttention().eval(), {"x": Input(("batch", 1, 48)), "keys": cache, "values": cache}, "decoder")
    made.free["past"] = 7
    return made
