"""Still more networks of the corpus: experts, latent attention, states, speech from text, text about images.

They enter themselves into `NETWORKS` as those of networks.py do, and are as small.
"""

from collections.abc import Callable
from typing import Any

import torch
from further import BART, SIDE, SOURCE, T5, both_ends, instance, with_cache
from language import NETWORKS, TWO, _features, _recurrent, _step
from networks import INNER, LAYERS, PATCHES, SMALL, TOKENS, WIDTH, Input, Network, decoder, encoder, network, published
from senses import ROUTED, SPACES, _image_and_text, _text
from torch import nn

ROUTES = {**ROUTED, "n_routed_experts": 4, "num_experts_per_token": 2}
LATENT = {
    "num_key_value_heads": 4,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
    "head_dim": 8,
}
INDEXED = {"index_n_heads": 2, "index_head_dim": 16, "index_topk": 4}
STATES = {**SPACES, "layers_block_type": ["mamba", "hybrid"]}
VOICE = {"block_size": 64, "input_vocab_size": 100, "output_vocab_size": 100, "num_layers": LAYERS, "num_heads": 4}
LLAMA = {"model_type": "llama", **_text(num_key_value_heads=2, pad_token_id=0)}
PIXELS = Input(("batch", 3, 32, 32), "image")
MEL = {"num_mel_bins": 20, "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 4}


class Called(nn.Module):
    """A model of `transformers` some of whose inputs are the first tokens (an image's places), and one result."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], keep: str, places: int = 0) -> None:
        super().__init__()
        self.model, self.names, self.keep, self.places = model, names, keep, places

    def forward(self, *values: torch.Tensor) -> Any:
        given: dict[str, Any] = dict(zip(self.names, values, strict=True))
        if self.places:
            start = torch.full((values[0].shape[0], self.places), 99, dtype=torch.int64)
            given["input_ids"] = torch.cat([start, given["input_ids"]], 1)
        return self.model(**given, use_cache=False)[self.keep]


def _called(model: nn.Module, inputs: dict[str, Input], keep: str, family: str, places: int = 0) -> Network:
    return Network(Called(model, tuple(inputs), keep, places).eval(), inputs, family)


def _masked(cls: str, config: str, **options: Any) -> Callable[[], Network]:
    """A decoder of tokens and a mask, of fixed length: state spaces unroll over it."""
    inputs = {"input_ids": Input(("batch", 8), "tokens"), "attention_mask": Input(("batch", 8), "mask")}
    return lambda: published(cls, config, _text(**options), inputs, ("logits",), "scan")


def _seen(cls: str, config: str, places: int, **options: Any) -> Callable[[], Network]:
    return _image_and_text(cls, config, "logits", places, image_token_id=99, **options)


NETWORKS |= {
    "afmoe": decoder("AfmoeForCausalLM", "AfmoeConfig", **SIDE, **ROUTES, num_dense_layers=1, sliding_window=8),
    "aria_text": decoder("AriaTextForCausalLM", "AriaTextConfig", **SIDE, moe_num_experts=4, moe_topk=2),
    "cwm": decoder("CwmForCausalLM", "CwmConfig", **SIDE, sliding_window=8),
    "deepseek_v2": decoder(
        "DeepseekV2ForCausalLM", "DeepseekV2Config", **LATENT, **ROUTES, n_shared_experts=1, topk_method="greedy"
    ),
    "deepseek_v32": decoder("DeepseekV32ForCausalLM", "DeepseekV32Config", **LATENT, **ROUTES, **INDEXED),
    "doge": decoder("DogeForCausalLM", "DogeConfig", **SIDE, keep_window_size=16),
    "dots1": decoder("Dots1ForCausalLM", "Dots1Config", **SIDE, **ROUTES, n_group=1, topk_group=1, n_shared_experts=1),
    "ernie45_experts": decoder(
        "Ernie4_5_MoeForCausalLM",
        "Ernie4_5_MoeConfig",
        **TWO,
        moe_num_experts=4,
        moe_k=2,
        moe_intermediate_size=32,
        pad_token_id=0,
    ),
    "exaone_experts": decoder("ExaoneMoeForCausalLM", "ExaoneMoeConfig", **SIDE, **ROUTES, sliding_window=8),
    "gemma4": decoder("Gemma4ForCausalLM", "Gemma4TextConfig", **SIDE),
    "glm4_lite": decoder("Glm4MoeLiteForCausalLM", "Glm4MoeLiteConfig", **LATENT, **ROUTES, pad_token_id=0),
    "glm_indexed": decoder("GlmMoeDsaForCausalLM", "GlmMoeDsaConfig", **LATENT, **ROUTES, **INDEXED, pad_token_id=0),
    "granite_hybrid": decoder(
        "GraniteMoeHybridForCausalLM",
        "GraniteMoeHybridConfig",
        **TWO,
        **SPACES,
        **ROUTES,
        layer_types=["mamba", "attention"][:LAYERS],
        shared_intermediate_size=64,
    ),
    "jetmoe": decoder(
        "JetMoeForCausalLM", "JetMoeConfig", **TWO, kv_channels=16, num_local_experts=4, num_experts_per_tok=2
    ),
    "llama4": decoder(
        "Llama4ForCausalLM",
        "Llama4TextConfig",
        **SIDE,
        num_local_experts=2,
        num_experts_per_tok=1,
        intermediate_size_mlp=INNER,
        attention_chunk_size=8,
        pad_token_id=0,
    ),
    "longcat": decoder(
        "LongcatFlashForCausalLM",
        "LongcatFlashConfig",
        **LATENT,
        num_layers=LAYERS,
        ffn_hidden_size=INNER,
        expert_ffn_hidden_size=32,
        moe_topk=2,
        zero_expert_num=1,
        n_routed_experts=4,
    ),
    "minicpm3": decoder("MiniCPM3ForCausalLM", "MiniCPM3Config", **LATENT),
    "minimax_m2": decoder("MiniMaxM2ForCausalLM", "MiniMaxM2Config", **SIDE, **ROUTES),
    "mimo_v2": decoder("MiMoV2FlashForCausalLM", "MiMoV2FlashConfig", **SIDE, **ROUTES),
    "modern_bert_decoder": decoder("ModernBertDecoderForCausalLM", "ModernBertDecoderConfig", pad_token_id=0),
    "solar_open": decoder("SolarOpenForCausalLM", "SolarOpenConfig", **SIDE, **ROUTES, n_shared_experts=1),
    "vaultgemma": decoder("VaultGemmaForCausalLM", "VaultGemmaConfig", **SIDE, sliding_window=8),
    "youtu": decoder("YoutuForCausalLM", "YoutuConfig", **LATENT),
    "cached_cwm": with_cache("CwmForCausalLM", "CwmConfig", 2, **SIDE, sliding_window=16),
    "cached_dots1": with_cache(
        "Dots1ForCausalLM", "Dots1Config", 2, **SIDE, **ROUTES, n_group=1, topk_group=1, n_shared_experts=1
    ),
    "cached_ministral": with_cache("MinistralForCausalLM", "MinistralConfig", 2, **SIDE, sliding_window=16),
    "cached_vaultgemma": with_cache("VaultGemmaForCausalLM", "VaultGemmaConfig", 2, **SIDE, sliding_window=16),
    "cached_jais2": with_cache("Jais2ForCausalLM", "Jais2Config", 2, **SIDE),
    "cached_bark": with_cache("BarkSemanticModel", "BarkSemanticConfig", **VOICE, hidden_size=WIDTH),
    "zamba2": _masked(
        "Zamba2ForCausalLM",
        "Zamba2Config",
        **STATES,
        mamba_ngroups=1,
        n_mamba_heads=8,
        mamba_headdim=WIDTH // 4,
        chunk_size=4,
        num_mem_blocks=1,
        use_mem_rope=True,
        adapter_rank=8,
        attention_hidden_size=2 * WIDTH,
        num_key_value_heads=4,
        attention_head_dim=WIDTH // 2,
    ),
    "nemotron_h": _masked(
        "NemotronHForCausalLM",
        "NemotronHConfig",
        **SIDE,
        ssm_state_size=8,
        mamba_num_heads=8,
        mamba_head_dim=WIDTH // 4,
        n_groups=1,
        chunk_size=4,
        layers_block_type=["mamba", "attention", "mlp"],
    ),
    "xlstm": _recurrent("xLSTMForCausalLM", "xLSTMConfig", num_heads=4, num_blocks=LAYERS, chunk_size=4),
    "bark_semantic": lambda: published(
        "BarkSemanticModel", "BarkSemanticConfig", {**VOICE, "hidden_size": WIDTH}, TOKENS, ("logits",), "audio"
    ),
    "bark_coarse": lambda: published(
        "BarkCoarseModel",
        "BarkCoarseConfig",
        {**VOICE, "hidden_size": WIDTH, "bias": False},
        TOKENS,
        ("logits",),
        "audio",
    ),
    "univnet": lambda: published(
        "UnivNetModel",
        "UnivNetConfig",
        {
            "model_in_channels": 8,
            "model_hidden_channels": 8,
            "num_mel_bins": 20,
            "resblock_kernel_sizes": [3],
            "resblock_stride_sizes": [4],
            "resblock_dilation_sizes": [[1, 3]],
            "kernel_predictor_hidden_channels": 8,
        },
        {"input_features": Input(("batch", 12, 20)), "noise_sequence": Input(("batch", 12, 8))},
        ("waveforms",),
        "audio",
    ),
    "qwen2_audio": _features(
        "Qwen2AudioEncoder",
        "Qwen2AudioEncoderConfig",
        ("batch", 20, 80),
        "input_features",
        "last_hidden_state",
        num_mel_bins=20,
        encoder_layers=LAYERS,
        encoder_attention_heads=4,
        encoder_ffn_dim=INNER,
        d_model=WIDTH,
        max_source_positions=40,
    ),
    "voxtral": _features(
        "VoxtralEncoder",
        "VoxtralEncoderConfig",
        ("batch", 20, 80),
        "input_features",
        "last_hidden_state",
        **MEL,
        intermediate_size=INNER,
        max_source_positions=40,
    ),
    "plbart": both_ends("PLBartForConditionalGeneration", "PLBartConfig", SOURCE, **BART),
    "mvp": both_ends("MvpForConditionalGeneration", "MvpConfig", SOURCE, **BART),
    "led": both_ends(
        "LEDForConditionalGeneration",
        "LEDConfig",
        SOURCE,
        **BART,
        attention_window=4,
        max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64,
    ),
    "pegasus_x": both_ends(
        "PegasusXForConditionalGeneration", "PegasusXConfig", SOURCE, **BART, block_size=4, num_global_tokens=4
    ),
    "t5gemma": both_ends(
        "T5GemmaForConditionalGeneration",
        "T5GemmaConfig",
        SOURCE,
        encoder=_text(**SIDE, sliding_window=8),
        decoder=_text(**SIDE, sliding_window=8, cross_attention_hidden_size=WIDTH),
    ),
    "step_plbart": _step("PLBartForConditionalGeneration", "PLBartConfig", **BART),
    "step_m2m": _step("M2M100ForConditionalGeneration", "M2M100Config", **BART),
    "step_umt5": _step("UMT5ForConditionalGeneration", "UMT5Config", **T5),
    "xmod": encoder("XmodModel", "XmodConfig", languages=["en"], default_language="en"),
    "mra": encoder("MraModel", "MraConfig"),
    "yoso": encoder("YosoModel", "YosoConfig", use_expectation=True),
    "gte": encoder("GteModel", "GteConfig"),
    "markuplm": encoder("MarkupLMModel", "MarkupLMConfig"),
    "internvl": _seen(
        "InternVLForConditionalGeneration",
        "InternVLConfig",
        4,
        vision_config={**PATCHES, "image_size": [32, 32], "patch_size": [8, 8]},
        text_config=LLAMA,
        downsample_ratio=0.5,
    ),
    "gemma3_vision": _seen(
        "Gemma3ForConditionalGeneration",
        "Gemma3Config",
        4,
        vision_config={"model_type": "siglip_vision_model", **PATCHES},
        text_config=_text(**SIDE, sliding_window=8),
        mm_tokens_per_image=4,
    ),
}


@network
def _smolvlm() -> Network:
    options = {"text_config": LLAMA, "vision_config": PATCHES, "image_token_id": 99, "scale_factor": 2}
    made = instance("SmolVLMForConditionalGeneration", "SmolVLMConfig", **options, pad_token_id=0)
    inputs = {
        "input_ids": Input(("batch", 7), "tokens", 99),
        "pixel_values": Input(("batch", 1, 3, 32, 32), "image"),
    }
    return _called(made, inputs, "logits", "several senses", places=4)


@network
def _florence2() -> Network:
    vision = {
        "depths": [1, 1],
        "embed_dim": [16, 32],
        "num_heads": [2, 2],
        "num_groups": [2, 2],
        "patch_size": [7, 3],
        "patch_stride": [4, 2],
        "patch_padding": [3, 1],
        "patch_prenorm": [False, True],
        "window_size": 4,
        "projection_dim": WIDTH,
        "max_position_embeddings": 16,
    }
    options = {"vision_config": vision, "text_config": {"model_type": "bart", **BART}, "image_token_id": 99}
    made = instance("Florence2ForConditionalGeneration", "Florence2Config", **options)
    inputs = {
        "input_ids": Input(("batch", 7), "tokens", 99),
        "pixel_values": PIXELS,
        "decoder_input_ids": Input(("batch", 5), "tokens", 99),
    }
    return _called(made, inputs, "logits", "several senses", places=17)


SPEECH = {
    "vocab_size": 100,
    "hidden_size": WIDTH,
    **{k: v for k, v in BART.items() if k.startswith(("encoder", "decoder_layers", "decoder_att", "decoder_ffn"))},
    "num_mel_bins": 20,
    "speech_decoder_prenet_units": 32,
    "speech_decoder_prenet_dropout": 0.0,
    "speech_decoder_postnet_units": 32,
    "speech_decoder_postnet_layers": 3,
    "speaker_embedding_dim": 24,
    "conv_dim": (16, 24, 32),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "encoder_max_relative_position": 16,
    "max_speech_positions": 64,
    "max_text_positions": 64,
}


@network
def _speecht5_letters() -> Network:
    inputs = {"input_values": Input(("batch", 800)), "decoder_input_ids": Input(("batch", 5), "tokens")}
    return _called(instance("SpeechT5ForSpeechToText", "SpeechT5Config", **SPEECH), inputs, "logits", "audio")


@network
def _musicgen() -> Network:
    options = {k: v for k, v in SMALL.items() if k not in ("intermediate_size", "attn_implementation")}
    made = instance("MusicgenForCausalLM", "MusicgenDecoderConfig", **options, ffn_dim=INNER, num_codebooks=2)
    inputs = {"input_ids": Input((4, "sequence"), "tokens"), "encoder_hidden_states": Input((2, 5, WIDTH))}
    return _called(made, inputs, "logits", "audio")


class ExpertsNode(nn.Module):
    """Layers of experts that are one node each, com.microsoft's MoE, or with `bits` its QMoE, as model builders write.

    The node is made by torch.export alone; what PyTorch computes in its place are zeros.
    """

    def __init__(self, activation: str, bits: int = 0, block: int = 0, points: bool = False, experts: int = 4) -> None:
        super().__init__()
        self.bits, each = bits, 8 // bits if bits else 1
        self.attributes: dict[str, Any] = {"k": 2, "activation_type": activation, "normalize_routing_weights": 1}
        outer = INNER
        if activation == "swiglu":
            outer *= 2
            self.attributes |= {
                "swiglu_fusion": 1,
                "activation_alpha": 1.702,
                "activation_beta": 1.0,
                "swiglu_limit": 7.0,
            }
        if bits:
            self.attributes |= {"expert_weight_bits": bits, "block_size": block}
        self.norm, self.router = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, experts)
        for name, columns, depth in (("first", outer, WIDTH), ("second", WIDTH, INNER)):
            blocks = depth // block if block else 1
            weights = torch.randn(experts, columns, depth) / depth**0.5
            points_shape = (experts, columns, -(-blocks // each))
            self.register_buffer(name, self._codes(experts, columns, depth // each) if bits else weights)
            self.register_buffer(
                f"{name}_scale", torch.rand(experts, columns, blocks) / 2**bits + 0.01 if bits else None
            )
            self.register_buffer(f"{name}_bias", torch.randn(experts, columns) / 8)
            self.register_buffer(f"{name}_points", self._codes(*points_shape) if points else None)

    @staticmethod
    def _codes(*shape: int) -> torch.Tensor:
        return torch.randint(0, 256, shape, dtype=torch.uint8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm(x)
        rows = normed.reshape(-1, WIDTH)
        given = [rows, self.router(rows), self.first]
        if self.bits:
            given += [self.first_scale, self.first_bias, self.second, self.second_scale, self.second_bias]
            given += [None, None, None, self.first_points, self.second_points]
        else:
            given += [self.first_bias, self.second, self.second_bias]
        node = "com.microsoft::QMoE" if self.bits else "com.microsoft::MoE"
        made = torch.onnx.ops.symbolic(node, given, self.attributes, dtype=x.dtype, shape=rows.shape, version=1)
        return x + made.reshape(x.shape)


def _experts(activation: str, bits: int = 0, block: int = 0, points: bool = False) -> Callable[[], Network]:
    """A decoder of such layers with attention before each; the node makes the exporter choose operators itself."""

    def make() -> Network:
        layers = [
            layer
            for _ in range(LAYERS)
            for layer in (
                nn.TransformerEncoderLayer(WIDTH, 4, INNER, batch_first=True, norm_first=True, dropout=0.0),
                ExpertsNode(activation, bits, block, points),
            )
        ]
        body = nn.Sequential(nn.Embedding(100, WIDTH), *layers, nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 100))
        return Network(body.eval(), {"input": Input(("batch", "sequence"), "tokens")}, "decoder")

    return make


NETWORKS |= {
    "experts_node": _experts("silu"),
    "experts_node_gated": _experts("swiglu"),
    "experts_node_4": _experts("swiglu", 4, 32),
    "experts_node_4_points": _experts("gelu", 4, 16, True),
    "experts_node_8": _experts("relu", 8, 32),
    "experts_node_8_rows": _experts("swiglu", 8),
}
