"""More networks of the corpus: decoders with caches, pairs of encoder and decoder, detectors, scans, graphs, diffusion.

They enter themselves into `NETWORKS` as those of networks.py do, and are as small.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from networks import (
    INNER,
    LAYERS,
    NETWORKS,
    PATCHES,
    SMALL,
    TOKENS,
    WIDTH,
    Input,
    Network,
    Outputs,
    decoder,
    encoder,
    network,
    published,
    timm_network,
    torchvision_network,
    vision,
)
from torch import nn

SIDE = {"num_key_value_heads": 2, "head_dim": WIDTH // 4}


def instance(cls: str, config: str, **options: Any) -> Any:
    """A model of `transformers` by the names of its classes, ready to run."""
    import transformers

    made = getattr(transformers, config)(**options)
    made._attn_implementation = options.get("attn_implementation", "eager")
    made._experts_implementation = options.get("experts_implementation", "batched_mm")
    return getattr(transformers, cls)(made).eval()


class Cached(nn.Module):
    """A decoder with its keys and values of earlier steps as inputs, which come back longer."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> Any:
        from transformers import DynamicCache

        cache = DynamicCache()
        for i in range(self.layers):
            cache.update(past[2 * i], past[2 * i + 1], i)
        result = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
        present = [value for layer in result.past_key_values.layers for value in (layer.keys, layer.values)]
        return (result.logits, *present)


def with_cache(cls: str, config: str, heads: int = 4, **changes: Any) -> Callable[[], Network]:
    """A decoder whose keys and values are inputs and outputs, with `heads` heads of keys."""

    def make() -> Network:
        module = Cached(instance(cls, config, **{**SMALL, **changes}), LAYERS)
        inputs = {
            "input_ids": Input(("batch", "sequence"), "tokens"),
            "attention_mask": Input(("batch", "past + sequence"), "mask"),
        }
        for i in range(LAYERS):
            for part in ("key", "value"):
                inputs[f"past_key_values.{i}.{part}"] = Input(("batch", heads, "past", WIDTH // 4))
        made = Network(module.eval(), inputs, "decoder with cache")
        made.free |= {"past": 5, "sequence": 3}
        return made

    return make


class Pooled(nn.Module):
    """Sentence embeddings: the mean over what the mask keeps (or the first token), scaled to length 1."""

    def __init__(self, model: nn.Module, first: bool) -> None:
        super().__init__()
        self.model, self.first = model, first

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        states = self.model(input_ids=ids, attention_mask=mask, token_type_ids=kinds)[0]
        kept = mask.unsqueeze(-1).expand(states.size()).float()
        mean = states[:, 0] if self.first else (states * kept).sum(1) / kept.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(mean, p=2, dim=1)


def _pooled(first: bool) -> Callable[[], Network]:
    def make() -> Network:
        inputs = {**TOKENS, "token_type_ids": Input(("batch", "sequence"), "labels", 2)}
        return Network(Pooled(instance("BertModel", "BertConfig", **SMALL), first).eval(), inputs, "encoder")

    return make


class Both(nn.Module):
    """Encoder and decoder in one graph."""

    def __init__(self, model: nn.Module, first: str) -> None:
        super().__init__()
        self.model, self.first = model, first

    def forward(self, first: torch.Tensor, ids: torch.Tensor) -> Any:
        given = {self.first: first, "decoder_input_ids": ids, "use_cache": False}
        return self.model(**given).logits


def both_ends(cls: str, config: str, first: Input, name: str = "input_ids", **options: Any) -> Callable[[], Network]:
    """Encoder and decoder in one graph; `first` is what the encoder reads, `name` what the model calls it."""

    def make() -> Network:
        inputs = {name: first, "decoder_input_ids": Input(("batch", "target"), "tokens")}
        made = Network(Both(instance(cls, config, **options), name).eval(), inputs, "encoder and decoder")
        made.free["target"] = 5
        return made

    return make


BART = {
    "vocab_size": 100,
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
}
T5 = {
    "vocab_size": 100,
    "d_model": WIDTH,
    "d_kv": WIDTH // 4,
    "d_ff": INNER,
    "num_layers": LAYERS,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
SOURCE = Input(("batch", "sequence"), "tokens")

NETWORKS |= {
    "cached_gpt2": with_cache("GPT2LMHeadModel", "GPT2Config", n_embd=WIDTH, n_layer=LAYERS, n_head=4, n_positions=64),
    "cached_llama": with_cache("LlamaForCausalLM", "LlamaConfig", 2, num_key_value_heads=2),
    "cached_qwen2": with_cache("Qwen2ForCausalLM", "Qwen2Config", 2, num_key_value_heads=2, attn_implementation="sdpa"),
    "cached_qwen3": with_cache("Qwen3ForCausalLM", "Qwen3Config", 2, **SIDE),
    "cached_gemma2": with_cache("Gemma2ForCausalLM", "Gemma2Config", 2, **SIDE, sliding_window=16),
    "cached_phi3": with_cache("Phi3ForCausalLM", "Phi3Config", 2, num_key_value_heads=2, pad_token_id=0),
    "cached_opt": with_cache("OPTForCausalLM", "OPTConfig", ffn_dim=INNER, word_embed_proj_dim=WIDTH),
    "minilm_mean": _pooled(False),
    "bge_first": _pooled(True),
    "t5": both_ends("T5ForConditionalGeneration", "T5Config", SOURCE, **T5),
    "bart": both_ends("BartForConditionalGeneration", "BartConfig", SOURCE, **BART),
    "marian": both_ends("MarianMTModel", "MarianConfig", SOURCE, **BART, activation_function="silu"),
    "whisper": both_ends(
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        Input(("batch", 20, 80)),
        "input_features",
        **{k: v for k, v in BART.items() if k != "max_position_embeddings"},
        num_mel_bins=20,
        max_source_positions=40,
        max_target_positions=32,
        eos_token_id=3,
        bos_token_id=2,
    ),
    "deberta": encoder("DebertaModel", "DebertaConfig", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "roformer": encoder("RoFormerModel", "RoFormerConfig", embedding_size=WIDTH),
    "squeezebert": encoder("SqueezeBertModel", "SqueezeBertConfig", embedding_size=WIDTH),
    "convbert": encoder("ConvBertModel", "ConvBertConfig", embedding_size=WIDTH),
    "esm": encoder("EsmModel", "EsmConfig", position_embedding_type="rotary", pad_token_id=1, mask_token_id=2),
    "xlnet": encoder("XLNetModel", "XLNetConfig", d_model=WIDTH, n_layer=LAYERS, n_head=4, d_inner=INNER),
    "bert_answers": encoder("BertForQuestionAnswering", "BertConfig", "start_logits"),
    "ibert": encoder("IBertModel", "IBertConfig"),
    "bigbird": encoder("BigBirdModel", "BigBirdConfig", attention_type="original_full"),
    "gemma2": decoder("Gemma2ForCausalLM", "Gemma2Config", **SIDE, sliding_window=8),
    "gemma3": decoder("Gemma3ForCausalLM", "Gemma3TextConfig", **SIDE, sliding_window=8),
    "phi3": decoder("Phi3ForCausalLM", "Phi3Config", num_key_value_heads=2, pad_token_id=0),
    "olmo2": decoder("Olmo2ForCausalLM", "Olmo2Config", num_key_value_heads=2),
    "stablelm": decoder("StableLmForCausalLM", "StableLmConfig", num_key_value_heads=2),
    "falcon": decoder("FalconForCausalLM", "FalconConfig", multi_query=True, alibi=False),
    "mixtral": decoder("MixtralForCausalLM", "MixtralConfig", num_key_value_heads=2, num_local_experts=4),
    "granite": decoder("GraniteForCausalLM", "GraniteConfig", num_key_value_heads=2),
    "cohere": decoder("CohereForCausalLM", "CohereConfig", num_key_value_heads=2),
    "starcoder2": decoder("Starcoder2ForCausalLM", "Starcoder2Config", num_key_value_heads=2),
    "gptj": decoder("GPTJForCausalLM", "GPTJConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4, rotary_dim=8),
    "smollm3": decoder("SmolLM3ForCausalLM", "SmolLM3Config", num_key_value_heads=2, pad_token_id=0),
    "glm": decoder("GlmForCausalLM", "GlmConfig", **SIDE, pad_token_id=0),
    "nemotron": decoder("NemotronForCausalLM", "NemotronConfig", **SIDE),
    "bigcode": decoder("GPTBigCodeForCausalLM", "GPTBigCodeConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4),
    "qwen3_experts": decoder(
        "Qwen3MoeForCausalLM", "Qwen3MoeConfig", **SIDE, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32
    ),
    "hubert": lambda: published(
        "HubertModel",
        "HubertConfig",
        {
            "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 4,
            "intermediate_size": INNER,
            "conv_dim": (16, 24),
            "conv_kernel": (10, 3),
            "conv_stride": (5, 2),
            "feat_extract_norm": "layer",
            "conv_bias": True,
            "do_stable_layer_norm": True,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 4,
        },
        {"input_values": Input(("batch", 800))},
        ("last_hidden_state",),
        "audio",
    ),
    "audio_spectrogram": lambda: published(
        "ASTModel",
        "ASTConfig",
        {
            **{k: v for k, v in PATCHES.items() if k != "image_size"},
            "num_mel_bins": 24,
            "max_length": 40,
            "frequency_stride": 8,
            "time_stride": 8,
        },
        {"input_values": Input(("batch", 40, 24))},
        ("last_hidden_state",),
        "audio",
    ),
    "swin2": vision(
        "Swinv2Model",
        "Swinv2Config",
        "last_hidden_state",
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "convnext2": vision(
        "ConvNextV2Model", "ConvNextV2Config", "last_hidden_state", depths=[1, 1, 1, 1], hidden_sizes=[16, 24, 32, 40]
    ),
    "yolos": vision(
        "YolosForObjectDetection",
        "YolosConfig",
        "logits",
        **{k: v for k, v in PATCHES.items() if k != "image_size"},
        image_size=[32, 32],
        num_detection_tokens=5,
    ),
    "pvt": vision(
        "PvtV2Model",
        "PvtV2Config",
        "last_hidden_state",
        hidden_sizes=[16, 24, 32, 40],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        mlp_ratios=[2, 2, 2, 2],
    ),
    "levit": vision(
        "LevitModel",
        "LevitConfig",
        "last_hidden_state",
        image_size=64,
        size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 3, 4],
        depths=[1, 1, 1],
        key_dim=[8, 8, 8],
    ),
    "masked_patches": vision("ViTMSNModel", "ViTMSNConfig", "last_hidden_state", **PATCHES),
    "depth": vision(
        "DPTForDepthEstimation",
        "DPTConfig",
        "predicted_depth",
        **{**PATCHES, "num_hidden_layers": 4},
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16, 16, 24, 24],
        fusion_hidden_size=16,
        is_hybrid=False,
    ),
    "regnet": torchvision_network("regnet_y_400mf"),
    "efficientnet": timm_network("efficientnet_b0"),
    "efficientnet_v2": timm_network("tf_efficientnetv2_b0"),
    "densenet": timm_network("densenet121", growth_rate=8),
    "inception": timm_network("inception_next_atto"),
    "mobilenet_v4": timm_network("mobilenetv4_conv_small_050"),
    "mobilevit2": timm_network("mobilevitv2_050"),
    "fastvit": timm_network("fastvit_t8"),
    "maxvit": timm_network("maxvit_rmlp_pico_rw_256", 64, img_size=64),
    "coatnet": timm_network("coatnet_nano_rw_224", 64, img_size=64),
    "res2net": timm_network("res2net50_14w_8s"),
    "repvit": timm_network("repvit_m0_9"),
    "vgg": timm_network("vgg11_bn", 32),
    "davit": timm_network("efficientvit_b0"),
    "starnet": timm_network("starnet_s1"),
    "mobilenet_v3_same": timm_network("tf_mobilenetv3_small_075"),
    "nfnet": timm_network("test_nfnet"),
    "cross_covariance": timm_network("xcit_nano_12_p16_224", img_size=64),
    "resmlp": timm_network("resmlp_12_224", 32, img_size=32, num_blocks=2, embed_dim=64),
}


@network
def _clip() -> Network:
    import transformers

    text = {k: v for k, v in SMALL.items() if k != "attn_implementation"} | {"eos_token_id": 2}
    config = transformers.CLIPConfig(text_config=text, vision_config=PATCHES, projection_dim=32)
    config._attn_implementation = "eager"
    keep = ("logits_per_image", "text_embeds", "image_embeds")
    inputs = {
        "input_ids": Input(("batch", "sequence"), "tokens"),
        "pixel_values": Input(("images", 3, 32, 32), "image"),
        "attention_mask": Input(("batch", "sequence"), "mask"),
    }
    made = Network(Outputs(transformers.CLIPModel(config).eval(), tuple(inputs), keep), inputs, "vision transformer")
    made.free["images"] = 3
    return made


@network
def _detr() -> Network:
    import transformers

    body = {"embedding_size": 8, "hidden_sizes": [8, 12, 16, 24], "depths": [1] * 4, "layer_type": "basic"}
    parts = {f"{part}_{name}": size for part in ("encoder", "decoder") for name, size in
             (("layers", 1), ("attention_heads", 4), ("ffn_dim", 48))}  # fmt: skip
    image = {"pixel_values": Input(("batch", 3, 64, 64), "image")}
    options = {
        "use_timm_backbone": False,
        "backbone": None,
        "backbone_config": transformers.ResNetConfig(out_features=["stage4"], **body),
        "d_model": 32,
        "num_queries": 6,
        "num_labels": 4,
        **parts,
    }
    return published("DetrForObjectDetection", "DetrConfig", options, image, ("logits", "pred_boxes"), "detector")


@network
def _video() -> Network:
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    kernels: dict[str, Any] = {"kernel_q": [3] * 3, "kernel_kv": [3] * 3}
    blocks = [
        MSBlockConfig(1, 24, 24, stride_q=[1, 1, 1], stride_kv=[1, 4, 4], **kernels),
        MSBlockConfig(2, 24, 48, stride_q=[1, 2, 2], stride_kv=[1, 2, 2], **kernels),
    ]
    further = {"residual_pool": True, "residual_with_cls_embed": False, "rel_pos_embed": True, "proj_after_attn": True}
    made = MViT((32, 32), 8, blocks, num_classes=5, **further).eval()
    return Network(made, {"clip": Input(("batch", 3, 8, 32, 32), "image")}, "vision transformer")


class Boxes(nn.Module):
    """A one-stage detector's head: classes and distances of three levels, decoded to boxes."""

    def __init__(self, classes: int, chosen: bool) -> None:
        super().__init__()
        self.classes, self.chosen = classes, chosen
        widths = (12, 16, 24)

        def block(a: int, b: int, stride: int = 1) -> nn.Module:
            return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b), nn.SiLU())

        self.stem = block(3, 8, 2)
        self.down = nn.ModuleList(block(a, b, 2) for a, b in zip((8, *widths[:-1]), widths, strict=True))
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.mix = block(widths[2] * 2, widths[2])
        self.side = block(widths[2] + widths[1], widths[1])
        self.heads = nn.ModuleList(nn.Conv2d(w, 4 * 8 + classes, 1) for w in (widths[1], widths[2]))
        self.register_buffer("bins", torch.arange(8.0).view(1, 8, 1, 1))

    def forward(self, x: torch.Tensor) -> Any:
        levels = [x := part(x) for part in [self.stem, *self.down]]
        deep = self.mix(torch.cat([levels[-1], self.pool(levels[-1])], 1))
        fine = self.side(torch.cat([nn.functional.interpolate(deep, scale_factor=2.0, mode="nearest"), levels[-2]], 1))
        boxes, scores = [], []
        for level, stride, head in zip((fine, deep), (8, 16), self.heads, strict=True):
            found = head(level)
            n, _, h, w = found.shape
            distances, classes = found.flatten(2).split((32, self.classes), 1)
            distances = (distances.view(n, 4, 8, -1).transpose(1, 2).softmax(1) * self.bins).sum(1)
            ys, xs = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            middle = torch.stack([xs, ys]).flatten(1)
            low, high = middle - distances[:, :2], middle + distances[:, 2:]
            boxes.append(torch.cat([low, high], 1) * stride)
            scores.append(classes.sigmoid())
        boxes, scores = torch.cat(boxes, 2), torch.cat(scores, 2)
        if not self.chosen:
            return torch.cat([boxes, scores], 1)
        import torchvision

        best, label = scores[0].max(0)
        kept = torchvision.ops.nms(boxes[0].t(), best, 0.5)
        return boxes[0].t()[kept], best[kept], label[kept]


@network
def _detector() -> Network:
    return Network(Boxes(5, False).eval(), {"image": Input(("batch", 3, 64, 64), "image")}, "detector")


@network
def _detector_chosen() -> Network:
    return Network(Boxes(5, True).eval(), {"image": Input((1, 3, 64, 64), "image")}, "detector")


class Anchors(nn.Module):
    """A detector with anchors: offsets scaled by priors, softmax over classes, the best hundred."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU6()]
        for width in (16, 24):
            layers += [nn.Conv2d(16, 16, 3, 2, 1, groups=16), nn.BatchNorm2d(16), nn.ReLU6(), nn.Conv2d(16, width, 1)]
            layers += [nn.BatchNorm2d(width)] + ([nn.Conv2d(24, 16, 1)] if width == 24 else [])
        self.body = nn.Sequential(*layers)
        self.offsets, self.classes = nn.Conv2d(16, 12, 3, padding=1), nn.Conv2d(16, 12, 3, padding=1)
        self.register_buffer("priors", torch.rand(192, 4) + 0.1)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.body(x)
        offsets = self.offsets(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        scores = self.classes(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4).softmax(-1)
        middle = self.priors[:, :2] + offsets[..., :2] * 0.1 * self.priors[:, 2:]
        size = self.priors[:, 2:] * torch.exp(offsets[..., 2:] * 0.2)
        boxes = torch.cat([middle - size / 2, middle + size / 2], -1).clamp(0, 1)
        best, which = scores[..., 1:].max(-1)
        best, order = best.topk(20, 1)
        return boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4)), best, which.gather(1, order)


@network
def _anchors() -> Network:
    return Network(Anchors().eval(), {"image": Input(("batch", 3, 64, 64), "image")}, "detector")


class Queries(nn.Module):
    """Detection by queries: convolutions, an encoder, a decoder with learned queries, and masks by product."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 24, 4, 4), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1))
        self.transformer = nn.Transformer(48, 4, 1, 1, 64, batch_first=True, dropout=0.0)
        self.queries = nn.Parameter(torch.randn(6, 48))
        self.classes, self.boxes, self.masks = nn.Linear(48, 5), nn.Linear(48, 4), nn.Linear(48, 48)

    def forward(self, x: torch.Tensor) -> Any:
        image = self.body(x)
        memory = image.flatten(2).transpose(1, 2)
        found = self.transformer(memory, self.queries.unsqueeze(0).expand(x.shape[0], -1, -1))
        masks = torch.einsum("bqc,bchw->bqhw", self.masks(found), image)
        masks = nn.functional.interpolate(masks, scale_factor=4.0, mode="bilinear", align_corners=False)
        return self.classes(found), self.boxes(found).sigmoid(), masks > 0


@network
def _queries() -> Network:
    return Network(Queries().eval(), {"image": Input(("batch", 3, 48, 48), "image")}, "detector")


class Points(nn.Module):
    """A promptable mask decoder: points in Fourier features, attention both ways, transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("waves", torch.randn(2, 16))
        self.kinds = nn.Embedding(2, 32)
        self.there, self.back = (nn.MultiheadAttention(32, 4, batch_first=True) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(2))
        self.up = nn.Sequential(nn.ConvTranspose2d(32, 16, 2, 2), nn.GroupNorm(1, 16), nn.GELU())
        self.last, self.filters = nn.ConvTranspose2d(16, 8, 2, 2), nn.Linear(32, 8)

    def forward(self, image: torch.Tensor, points: torch.Tensor, labels: torch.Tensor) -> Any:
        angles = 2 * math.pi * (points @ self.waves)
        tokens = torch.cat([angles.sin(), angles.cos()], -1) + self.kinds(labels)
        pixels = image.flatten(2).transpose(1, 2)
        tokens = self.norms[0](tokens + self.there(tokens, pixels, pixels, need_weights=False)[0])
        pixels = self.norms[1](pixels + self.back(pixels, tokens, tokens, need_weights=False)[0])
        big = self.last(self.up(pixels.transpose(1, 2).reshape(image.shape)))
        masks = self.filters(tokens) @ big.flatten(2)
        return masks.reshape(masks.shape[0], masks.shape[1], big.shape[2], big.shape[3])


@network
def _points() -> Network:
    inputs = {
        "image": Input(("batch", 32, 8, 8)),
        "points": Input(("batch", "points", 2)),
        "labels": Input(("batch", "points"), "labels", 2),
    }
    made = Network(Points().eval(), inputs, "vision transformer")
    made.free["points"] = 3
    return made


class Denoiser(nn.Module):
    """A diffusion U-Net: time as sines, residual blocks with group normalization, attention over a text."""

    def __init__(self) -> None:
        super().__init__()

        def block(width: int) -> nn.Module:
            return nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))

        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.entry, self.down = nn.Conv2d(4, 32, 3, padding=1), nn.Conv2d(32, 32, 3, 2, 1)
        self.blocks = nn.ModuleList(block(32) for _ in range(3))
        self.norm, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, kdim=24, vdim=24, batch_first=True)
        self.gated, self.back = nn.Linear(32, 128), nn.Linear(64, 32)
        self.up, self.last = nn.Conv2d(64, 32, 3, padding=1), nn.Conv2d(32, 4, 3, padding=1)

    def forward(self, x: torch.Tensor, step: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        rates = torch.exp(-math.log(10000) * torch.arange(8) / 8)
        angles = step[:, None].float() * rates[None]
        time = self.time(torch.cat([angles.cos(), angles.sin()], -1))[:, :, None, None]
        x = self.entry(x)
        first = x + self.blocks[0](x) + time
        x = self.down(first)
        x = x + self.blocks[1](x + time)
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        tokens = tokens + self.attention(tokens, text, text, need_weights=False)[0]
        value, gate = self.gated(tokens).chunk(2, -1)
        tokens = tokens + self.back(value * nn.functional.gelu(gate))
        x = x + tokens.transpose(1, 2).reshape(x.shape)
        x = nn.functional.interpolate(x, scale_factor=2.0, mode="nearest")
        x = self.up(torch.cat([x, first], 1))
        return self.last(nn.functional.silu(x + self.blocks[2](x)))


@network
def _denoiser() -> Network:
    inputs = {
        "sample": Input(("batch", 4, 16, 16)),
        "timestep": Input(("batch",), "tokens", 1000),
        "text": Input(("batch", "sequence", 24)),
    }
    return Network(Denoiser().eval(), inputs, "diffusion")


@network
def _latent_decoder() -> Network:
    def block(a: int, b: int) -> list[nn.Module]:
        return [nn.GroupNorm(4, a), nn.SiLU(), nn.Conv2d(a, b, 3, padding=1)]

    layers = [nn.Conv2d(4, 24, 3, padding=1), *block(24, 24), nn.Upsample(scale_factor=2.0), *block(24, 16)]
    layers += [nn.Upsample(scale_factor=2.0), *block(16, 16), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 3, 3, 1, 1)]
    return Network(nn.Sequential(*layers).eval(), {"latent": Input(("batch", 4, 8, 8))}, "diffusion")


class Selective(nn.Module):
    """A selective state space: a short convolution, then a scan over time, by steps or by sums in doubling strides."""

    def __init__(self, steps: int, doubling: bool) -> None:
        super().__init__()
        self.steps, self.doubling = steps, doubling
        self.entry, self.exit = nn.Linear(24, 64), nn.Linear(32, 24)
        self.short = nn.Conv1d(32, 32, 4, groups=32, padding=3)
        self.rates, self.pairs = nn.Linear(32, 32), nn.Linear(32, 8)
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, 5.0).repeat(32, 1)))
        self.skip, self.norm = nn.Parameter(torch.ones(32)), nn.LayerNorm(24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        u, gate = self.entry(self.norm(x)).chunk(2, -1)
        u = nn.functional.silu(self.short(u.transpose(1, 2))[..., : self.steps].transpose(1, 2))
        delta = nn.functional.softplus(self.rates(u))
        b, c = self.pairs(u).chunk(2, -1)
        keep = torch.exp(-torch.exp(self.decay) * delta.unsqueeze(-1))
        add = (delta * u).unsqueeze(-1) * b.unsqueeze(2)
        if self.doubling:
            shift = 1
            while shift < self.steps:
                back = nn.functional.pad(add[:, :-shift], (0, 0, 0, 0, shift, 0))
                older = nn.functional.pad(keep[:, :-shift], (0, 0, 0, 0, shift, 0), value=1.0)
                add, keep, shift = add + keep * back, keep * older, shift * 2
            states = add
        else:
            state, collected = torch.zeros_like(add[:, 0]), []
            for t in range(self.steps):
                state = keep[:, t] * state + add[:, t]
                collected.append(state)
            states = torch.stack(collected, 1)
        y = (states * c.unsqueeze(2)).sum(-1) + u * self.skip
        return x + self.exit(y * nn.functional.silu(gate))


@network
def _selective_scan() -> Network:
    return Network(Selective(10, False).eval(), {"x": Input(("batch", 10, 24))}, "scan")


@network
def _selective_doubling() -> Network:
    return Network(Selective(16, True).eval(), {"x": Input(("batch", 16, 24))}, "scan")


class Retention(nn.Module):
    """Linear attention: sums over time of products of keys and values, with decays."""

    def __init__(self) -> None:
        super().__init__()
        self.parts, self.out, self.norm = nn.Linear(32, 128), nn.Linear(32, 32), nn.RMSNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v, g = self.parts(self.norm(x)).chunk(4, -1)
        q, k = nn.functional.elu(q) + 1, torch.exp(k.clamp(max=4.0))
        total = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
        bottom = (q * torch.cumsum(k, 1)).sum(-1, keepdim=True)
        mixed = torch.einsum("btk,btkv->btv", q, total) / (bottom + 1e-6)
        return x + self.out(mixed * torch.sigmoid(g))


@network
def _retention() -> Network:
    return Network(Retention().eval(), {"x": Input(("batch", "sequence", 32))}, "scan")


class Messages(nn.Module):
    """Graph layers: messages along edges, added up where they arrive, with or without attention."""

    def __init__(self, attention: bool) -> None:
        super().__init__()
        self.attention = attention
        self.entry, self.message = nn.Linear(12, 24), nn.Linear(48, 24)
        self.weight, self.update, self.last = nn.Linear(24, 1), nn.GRUCell(24, 24), nn.Linear(24, 4)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.entry(nodes))
        source, target = edges[0], edges[1]
        message = torch.relu(self.message(torch.cat([h[source], h[target]], -1)))
        if self.attention:
            raw = nn.functional.leaky_relu(self.weight(message), 0.2).exp()
            total = torch.zeros_like(h[:, :1]).index_add(0, target, raw)
            arrived = torch.zeros_like(h).index_add(0, target, message * raw) / (total + 1e-9)
        else:
            arrived = torch.zeros_like(h).scatter_add(0, target.unsqueeze(-1).expand(-1, 24), message)
            degree = torch.zeros_like(h[:, 0]).scatter_add(0, target, torch.ones_like(target, dtype=torch.float32))
            arrived = arrived * degree.clamp(min=1).pow(-0.5).unsqueeze(-1)
        h = self.update(arrived, h)
        return self.last(torch.cat([h, h.mean(0, keepdim=True).expand(h.shape[0], -1)], -1)[:, :24])


def _messages(attention: bool) -> Callable[[], Network]:
    def make() -> Network:
        inputs = {"nodes": Input(("nodes", 12)), "edges": Input((2, "edges"), "labels", 8)}
        made = Network(Messages(attention).eval(), inputs, "graph")
        made.free |= {"nodes": 8, "edges": 20}
        return made

    return make


class Conformer(nn.Module):
    """Feed-forward halves around attention and a gated depthwise convolution, on a subsampled spectrum."""

    def __init__(self) -> None:
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU())
        self.entry = nn.Linear(8 * 5, 32)
        self.halves = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 32)) for _ in range(2)
        )
        self.norm, self.attention = nn.LayerNorm(32), nn.MultiheadAttention(32, 4, batch_first=True)
        self.before, self.gated = nn.LayerNorm(32), nn.Conv1d(32, 64, 1)
        self.deep, self.batch, self.after = (
            nn.Conv1d(32, 32, 7, padding=3, groups=32),
            nn.BatchNorm1d(32),
            nn.Conv1d(32, 32, 1),
        )
        self.last, self.classes = nn.LayerNorm(32), nn.Linear(32, 20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.sub(x.unsqueeze(1))
        x = self.entry(x.transpose(1, 2).flatten(2))
        x = x + 0.5 * self.halves[0](x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        y = nn.functional.glu(self.gated(self.before(x).transpose(1, 2)), 1)
        x = x + self.after(nn.functional.silu(self.batch(self.deep(y)))).transpose(1, 2)
        x = self.last(x + 0.5 * self.halves[1](x))
        return nn.functional.log_softmax(self.classes(x), -1)


@network
def _conformer() -> Network:
    made = Network(Conformer().eval(), {"spectrum": Input(("batch", "time", 24))}, "audio")
    made.free["time"] = 41
    return made


class Causal(nn.Module):
    """A temporal convolutional network with weight normalization and causal padding."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.utils.parametrizations.weight_norm(nn.Conv1d(a, 16, 3, dilation=d))
            for a, d in ((6, 1), (16, 2), (16, 4))
        )
        self.skip, self.last = nn.Conv1d(6, 16, 1), nn.Linear(16, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x
        for layer in self.layers:
            y = torch.relu(layer(nn.functional.pad(y, (2 * layer.dilation[0], 0))))
        return self.last((y + self.skip(x))[:, :, -1])


@network
def _causal_convolutions() -> Network:
    return Network(Causal().eval(), {"x": Input(("batch", 6, "time"))}, "audio")


class Reader(nn.Module):
    """Text recognition: convolutions, columns through a recurrent layer both ways, classes per column."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
        )
        self.rows = nn.LSTM(16 * 4, 20, bidirectional=True, batch_first=True)
        self.last = nn.Linear(40, 30)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.body(x).permute(0, 3, 1, 2).flatten(2)
        return self.last(self.rows(columns)[0]).softmax(-1)


@network
def _reader() -> Network:
    return Network(Reader().eval(), {"image": Input((1, 1, 16, "width"), "image")}, "recurrent")


class Streaming(nn.Module):
    """A speech detector: a short spectrum by convolution, an LSTM whose state is input and output."""

    def __init__(self) -> None:
        super().__init__()
        self.spectrum, self.body = nn.Conv1d(1, 34, 32, 16, bias=False), nn.Conv1d(17, 24, 3, padding=1)
        self.cell, self.last = nn.LSTM(24, 24), nn.Linear(24, 1)

    def forward(self, wave: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> Any:
        real, imaginary = self.spectrum(nn.functional.pad(wave, (16, 16), mode="reflect")).chunk(2, 1)
        x = torch.log1p(torch.sqrt(real**2 + imaginary**2 + 1e-9))
        x = torch.relu(self.body(x)).permute(2, 0, 1)
        y, (h, c) = self.cell(x, (h, c))
        return torch.sigmoid(self.last(y)).mean(0), h, c


@network
def _streaming_speech() -> Network:
    state = Input((1, 1, 24))
    return Network(Streaming().eval(), {"wave": Input((1, 1, 160)), "h": state, "c": state}, "recurrent")


class Stylized(nn.Module):
    """Image to image: reflected padding, instance normalization, residual blocks, nearest upsampling."""

    def __init__(self) -> None:
        super().__init__()

        def layer(a: int, b: int, size: int, stride: int = 1) -> list[nn.Module]:
            return [nn.ReflectionPad2d(size // 2), nn.Conv2d(a, b, size, stride), nn.InstanceNorm2d(b, affine=True)]

        self.entry = nn.Sequential(*layer(3, 8, 9), nn.ReLU(), *layer(8, 16, 3, 2), nn.ReLU())
        self.middle = nn.Sequential(*layer(16, 16, 3), nn.ReLU(), *layer(16, 16, 3))
        self.exit = nn.Sequential(nn.Upsample(scale_factor=2.0), *layer(16, 8, 3), nn.ReLU(), nn.Conv2d(8, 3, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        return (torch.tanh(self.exit(x + self.middle(x))) + 1) * 127.5


@network
def _stylized() -> Network:
    return Network(Stylized().eval(), {"image": Input(("batch", 3, 32, 32), "image")}, "CNN")


class Dense(nn.Module):
    """Super resolution by dense blocks with LeakyReLU, scaled residuals, and a shuffle at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.entry, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 12, 3, padding=1)
        self.grow = nn.ModuleList(nn.Conv2d(16 + 8 * i, 8 if i < 3 else 16, 3, padding=1) for i in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = y = self.entry(x)
        for i, layer in enumerate(self.grow):
            z = layer(y)
            y = torch.cat([y, nn.functional.leaky_relu(z, 0.2)], 1) if i < 3 else z
        return nn.functional.pixel_shuffle(self.last(x + 0.2 * y), 2).clamp(0, 1)


@network
def _dense_resolution() -> Network:
    return Network(Dense().eval(), {"image": Input(("batch", 3, "height", "width"), "image")}, "CNN")


class Heatmaps(nn.Module):
    """Pose: transposed convolutions to heatmaps, places by soft and by hard maxima."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 4, 1), nn.ReLU(), nn.ConvTranspose2d(16, 12, 4, 2, 1), nn.PReLU(12), nn.Conv2d(12, 6, 1)
        )

    def forward(self, x: torch.Tensor) -> Any:
        maps = self.body(x)
        n, k, h, w = maps.shape
        weights = maps.flatten(2).softmax(-1).reshape(n, k, h, w)
        xs = (weights.sum(2) * torch.arange(w, dtype=torch.float32)).sum(-1)
        ys = (weights.sum(3) * torch.arange(h, dtype=torch.float32)).sum(-1)
        place = maps.flatten(2).argmax(-1)
        return torch.stack([xs, ys], -1), torch.stack([place % w, place // w], -1), maps.amax((2, 3))


@network
def _heatmaps() -> Network:
    return Network(Heatmaps().eval(), {"image": Input(("batch", 3, 48, 32), "image")}, "CNN")


class Warped(nn.Module):
    """Flow: an image moved by what a network finds, and the correlation of the two."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.flow = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x, y = torch.relu(self.body(a)), torch.relu(self.body(b))
        flow = torch.tanh(self.flow(torch.cat([x, y], 1))).permute(0, 2, 3, 1)
        lines = torch.linspace(-1, 1, 16)
        grid = torch.stack(torch.meshgrid(lines, lines, indexing="xy"), -1).unsqueeze(0)
        moved = nn.functional.grid_sample(y, grid + 0.2 * flow, align_corners=True)
        return torch.cat([(x * moved).mean(1, keepdim=True), moved - x], 1)


@network
def _warped() -> Network:
    image = Input(("batch", 3, 16, 16), "image")
    return Network(Warped().eval(), {"a": image, "b": image}, "CNN")


class Attributes(nn.Module):
    """Tables: embeddings of classes beside numbers, crossed in pairs, through a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(20, 8) for _ in range(4))
        self.entry, self.norm = nn.Linear(6, 8), nn.BatchNorm1d(18)
        self.deep = nn.Sequential(nn.Linear(18, 32), nn.Mish(), nn.Linear(32, 16), nn.Hardtanh(), nn.Linear(16, 1))

    def forward(self, numbers: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        columns = [table(classes[:, i]) for i, table in enumerate(self.tables)] + [self.entry(numbers)]
        stacked = torch.stack(columns, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, [0, 0, 0, 0, 1, 1, 1, 2, 2, 3], [1, 2, 3, 4, 2, 3, 4, 3, 4, 4]]
        return torch.sigmoid(self.deep(self.norm(torch.cat([pairs, columns[-1]], 1))))


@network
def _attributes() -> Network:
    inputs = {"numbers": Input(("batch", 6)), "classes": Input(("batch", 4), "labels", 20)}
    return Network(Attributes().eval(), inputs, "table")


class Forecast(nn.Module):
    """Time series: instance statistics taken out and put back, patches through an encoder, a trend beside it."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, activation="gelu")
        self.entry, self.encoder = nn.Linear(8, 32), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.place, self.last = nn.Parameter(torch.randn(7, 32) * 0.02), nn.Linear(7 * 32, 12)
        self.trend = nn.AvgPool1d(5, 1, 2, count_include_pad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, spread = x.mean(-1, keepdim=True), torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5)
        x = (x - mean) / spread
        patches = self.entry((x - self.trend(x)).unfold(-1, 8, 4)) + self.place
        y = self.last(self.encoder(patches.flatten(0, 1)).flatten(1)).unflatten(0, x.shape[:2])
        return y * spread + mean


@network
def _forecast() -> Network:
    return Network(Forecast().eval(), {"x": Input(("batch", 3, 32))}, "table")


class Policy(nn.Module):
    """A policy: normalized observations, a distribution's mean and spread, a value, the best action."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.randn(10))
        self.body = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.actor, self.spread, self.value = nn.Linear(32, 4), nn.Linear(32, 4), nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.body(((x - self.mean) / 1.7).clamp(-5, 5))
        spread = self.spread(y).clamp(-20, 2).exp()
        return torch.tanh(self.actor(y)), spread, self.value(y), (y[:, :4].softmax(-1)).argmax(-1)


@network
def _policy() -> Network:
    return Network(Policy().eval(), {"x": Input(("batch", 10))}, "table")


class Pyramid(nn.Module):
    """Levels of an image from coarse to fine, each added to the finer one when it is enlarged, twice or to its size."""

    def __init__(self, to_size: bool) -> None:
        super().__init__()
        self.to_size = to_size
        widths = (16, 32, 32)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        self.side = nn.ModuleList(nn.Conv2d(width, 16, 1) for width in widths)
        self.smooth = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in widths)

    def forward(self, x: torch.Tensor) -> Any:
        levels = [x := torch.relu(part(x)) for part in self.down]
        sides = [part(level) for part, level in zip(self.side, levels, strict=True)]
        for i in (1, 0):
            given = {"size": sides[i].shape[-2:]} if self.to_size else {"scale_factor": 2.0}
            sides[i] = sides[i] + nn.functional.interpolate(sides[i + 1], mode="nearest", **given)
        return tuple(part(side) for part, side in zip(self.smooth, sides, strict=True))


@network
def _pyramid() -> Network:
    return Network(Pyramid(False).eval(), {"image": Input(("batch", 3, 48, 32), "image")}, "detector")


@network
def _pyramid_to_sizes() -> Network:
    return Network(Pyramid(True).eval(), {"image": Input((2, 3, 48, 32), "image")}, "detector")
