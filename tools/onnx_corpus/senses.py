"""Still more networks of the corpus: state spaces, speech, time series, tables, graphs, and several senses at once.

They enter themselves into `NETWORKS` as those of networks.py do, and are as small.
"""

from collections.abc import Callable
from typing import Any

import torch
from further import SIDE, with_cache
from language import LINEAR, NETWORKS, PIECES, TWO, _features, _recurrent
from networks import (
    INNER,
    LAYERS,
    PATCHES,
    SMALL,
    WAVES,
    WIDTH,
    Input,
    Network,
    Outputs,
    decoder,
    encoder,
    network,
    published,
)
from torch import nn

SPACES = {
    "mamba_d_state": 8,
    "mamba_n_heads": 8,
    "mamba_d_head": WIDTH // 4,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 4,
}
ROUTED = {"num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SERIES = {
    "prediction_length": 4,
    "context_length": 12,
    "lags_sequence": [1, 2],
    "d_model": WIDTH,
    "encoder_layers": LAYERS,
    "decoder_layers": LAYERS,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": INNER,
    "decoder_ffn_dim": INNER,
    "num_time_features": 2,
    "use_cache": False,
}


class Named(nn.Module):
    """A model of `transformers` some of whose results are given."""

    def __init__(self, model: nn.Module, names: tuple[str, ...], keep: tuple[str, ...], **options: Any) -> None:
        super().__init__()
        self.model, self.names, self.keep, self.options = model, names, keep, options

    def forward(self, *values: torch.Tensor) -> Any:
        result = self.model(**dict(zip(self.names, values, strict=True)), **self.options)
        return tuple(result[name] for name in self.keep)


def _series(cls: str, config: str, **options: Any) -> Callable[[], Network]:
    def make() -> Network:
        from further import instance

        made = instance(cls, config, **SERIES, **options)
        inputs = {
            "past_values": Input(("batch", 14)),
            "past_time_features": Input(("batch", 14, 2)),
            "past_observed_mask": Input(("batch", 14), "labels", 2),
            "future_values": Input(("batch", 4)),
            "future_time_features": Input(("batch", 4, 2)),
        }
        return Network(Named(made, tuple(inputs), ("last_hidden_state", "loc", "scale")), inputs, "series")

    return make


def _text(**changes: Any) -> dict[str, Any]:
    return {**{k: v for k, v in SMALL.items() if k != "attn_implementation"}, **changes}


def _image_and_text(cls: str, config: str, keep: str, patches: int, **options: Any) -> Callable[[], Network]:
    """A decoder that reads an image's patches in the places of one token."""

    def make() -> Network:
        import transformers

        settings = getattr(transformers, config)(**options)
        settings._attn_implementation = "eager"
        model = getattr(transformers, cls)(settings).eval()
        model.config.use_cache = False

        class Prompt(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, ids: torch.Tensor, pixels: torch.Tensor) -> torch.Tensor:
                start = torch.full((ids.shape[0], patches), 99, dtype=torch.int64)
                given = torch.cat([start, ids], 1)
                return self.model(input_ids=given, pixel_values=pixels, use_cache=False)[keep]

        inputs = {
            "input_ids": Input(("batch", 7), "tokens", 99),
            "pixel_values": Input(("batch", 3, 32, 32), "image"),
        }
        return Network(Prompt().eval(), inputs, "several senses")

    return make


VISION = {**PATCHES, "num_channels": 3, "projection_dim": 32}

NETWORKS |= {
    "mamba2": _recurrent(
        "Mamba2ForCausalLM",
        "Mamba2Config",
        state_size=8,
        num_heads=8,
        head_dim=WIDTH // 4,
        n_groups=1,
        chunk_size=4,
        expand=2,
    ),
    "falcon_h1": _recurrent(
        "FalconH1ForCausalLM", "FalconH1Config", **TWO, **SPACES, mamba_d_ssm=2 * WIDTH, pad_token_id=0
    ),
    "bamba": _recurrent("BambaForCausalLM", "BambaConfig", **TWO, **SPACES, attn_layer_indices=[LAYERS - 1]),
    "minimax": decoder(
        "MiniMaxForCausalLM",
        "MiniMaxConfig",
        **SIDE,
        num_local_experts=4,
        num_experts_per_tok=2,
        layer_types=["linear_attention", "full_attention"][:LAYERS],
        block_size=4,
    ),
    "qwen3_5": decoder("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", **SIDE, **LINEAR),
    "lfm2_experts": decoder(
        "Lfm2MoeForCausalLM",
        "Lfm2MoeConfig",
        **TWO,
        **ROUTED,
        num_dense_layers=0,
        layer_types=["conv", "full_attention"][:LAYERS],
    ),
    "glm4_experts": decoder(
        "Glm4MoeForCausalLM",
        "Glm4MoeConfig",
        **SIDE,
        **{k: v for k, v in ROUTED.items() if k != "num_experts"},
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=0,
        pad_token_id=0,
    ),
    "hunyuan_experts": decoder(
        "HunYuanMoEV1ForCausalLM", "HunYuanMoEV1Config", **SIDE, num_experts=4, moe_topk=2, pad_token_id=0
    ),
    "diff_llama": decoder("DiffLlamaForCausalLM", "DiffLlamaConfig", **TWO, head_dim=WIDTH // 4),
    "modern_decoder": decoder(
        "ModernBertDecoderForCausalLM",
        "ModernBertDecoderConfig",
        pad_token_id=0,
        cls_token_id=1,
        sep_token_id=2,
        bos_token_id=1,
        eos_token_id=2,
    ),
    "cached_mixtral": with_cache("MixtralForCausalLM", "MixtralConfig", 2, **TWO, num_local_experts=4),
    "cached_qwen3_experts": with_cache(
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        2,
        **SIDE,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
    ),
    "cached_glm": with_cache("GlmForCausalLM", "GlmConfig", 2, **SIDE, pad_token_id=0),
    "cached_gptj": with_cache("GPTJForCausalLM", "GPTJConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4, rotary_dim=8),
    "canine": encoder(
        "CanineModel",
        "CanineConfig",
        local_transformer_stride=4,
        downsampling_rate=4,
        num_hash_buckets=50,
        upsampling_kernel_size=4,
        pad_token_id=0,
    ),
    "luke": encoder("LukeModel", "LukeConfig", entity_vocab_size=20, entity_emb_size=16),
    "moonshine": lambda: _moonshine(),
    "vits": lambda: _vits(),
    "bark_fine": lambda: _bark(),
    "mimi": _features(
        "MimiModel",
        "MimiConfig",
        ("batch", 1, 960),
        "input_values",
        "audio_values",
        num_filters=4,
        hidden_size=32,
        codebook_size=32,
        codebook_dim=16,
        vector_quantization_hidden_dimension=16,
        upsampling_ratios=[4, 2],
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=48,
        head_dim=8,
        num_quantizers=4,
        num_semantic_quantizers=1,
        sampling_rate=960,
        frame_rate=60.0,
        upsample_groups=32,
        sliding_window=16,
        max_position_embeddings=200,
    ),
    "parakeet_letters": _features(
        "ParakeetForCTC",
        "ParakeetCTCConfig",
        ("batch", 64, 40),
        "input_features",
        "logits",
        vocab_size=30,
        encoder_config={
            "hidden_size": WIDTH,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": 4,
            "intermediate_size": INNER,
            "subsampling_conv_channels": 16,
            "num_mel_bins": 40,
        },
    ),
    "xvector": lambda: published(
        "Wav2Vec2ForXVector",
        "Wav2Vec2Config",
        {
            **WAVES,
            "tdnn_dim": (32, 32, 48),
            "tdnn_kernel": (5, 3, 1),
            "tdnn_dilation": (1, 2, 1),
            "xvector_output_dim": 24,
        },
        {"input_values": Input(("batch", 800))},
        ("logits", "embeddings"),
        "audio",
    ),
    "informer": _series("InformerModel", "InformerConfig", attention_type="full", distil=True),
    "autoformer": _series("AutoformerModel", "AutoformerConfig", moving_average=5),
    "series_transformer": _series("TimeSeriesTransformerModel", "TimeSeriesTransformerConfig"),
    "patch_mixer": _features(
        "PatchTSMixerForPrediction",
        "PatchTSMixerConfig",
        ("batch", 32, 3),
        "past_values",
        "prediction_outputs",
        context_length=32,
        patch_length=8,
        patch_stride=8,
        num_input_channels=3,
        d_model=16,
        num_layers=2,
        prediction_length=8,
        mode="mix_channel",
        self_attn=True,
        gated_attn=True,
        scaling="std",
    ),
    "patch_tst_forecast": _features(
        "PatchTSTForPrediction",
        "PatchTSTConfig",
        ("batch", 32, 3),
        "past_values",
        "prediction_outputs",
        **PIECES,
        patch_stride=4,
        prediction_length=6,
        channel_attention=True,
        loss="mse",
    ),
    "times_fm": lambda: _times_fm(),
    "llava": _image_and_text(
        "LlavaForConditionalGeneration",
        "LlavaConfig",
        "logits",
        16,
        vision_config={**VISION, "model_type": "clip_vision_model"},
        text_config={**_text(**TWO), "model_type": "llama"},
        image_token_id=99,
        vision_feature_layer=-1,
    ),
    "paligemma": _image_and_text(
        "PaliGemmaForConditionalGeneration",
        "PaliGemmaConfig",
        "logits",
        16,
        vision_config={**VISION, "model_type": "siglip_vision_model"},
        text_config={**_text(**SIDE), "model_type": "gemma"},
        image_token_id=99,
        projection_dim=WIDTH,
    ),
    "blip_captions": lambda: _blip(),
    "vilt": lambda: published(
        "ViltModel",
        "ViltConfig",
        {**SMALL, **PATCHES, "max_image_length": -1},
        {"input_ids": Input(("batch", 6), "tokens"), "pixel_values": Input(("batch", 3, 32, 32), "image")},
        ("last_hidden_state", "pooler_output"),
        "several senses",
    ),
    "layoutlm3": lambda: published(
        "LayoutLMv3Model",
        "LayoutLMv3Config",
        {
            **SMALL,
            "input_size": 32,
            "patch_size": 8,
            "max_2d_position_embeddings": 64,
            "coordinate_size": 8,
            "shape_size": 8,
            "rel_pos_bins": 8,
            "max_rel_pos": 16,
            "rel_2d_pos_bins": 8,
            "max_rel_2d_pos": 32,
            "pad_token_id": 1,
        },
        {
            "input_ids": Input(("batch", 6), "tokens"),
            "bbox": Input(("batch", 6, 4), "labels", 20),
            "pixel_values": Input(("batch", 3, 32, 32), "image"),
        },
        ("last_hidden_state",),
        "several senses",
    ),
    "perceiver": lambda: published(
        "PerceiverForMaskedLM",
        "PerceiverConfig",
        {
            "vocab_size": 60,
            "d_model": WIDTH,
            "d_latents": 32,
            "num_latents": 8,
            "num_self_attends_per_block": 1,
            "num_blocks": 1,
            "num_self_attention_heads": 4,
            "num_cross_attention_heads": 4,
            "qk_channels": 32,
            "v_channels": 32,
            "max_position_embeddings": 16,
        },
        {"inputs": Input(("batch", 16), "tokens", 60)},
        ("logits",),
        "encoder",
    ),
    "decision": lambda: published(
        "DecisionTransformerModel",
        "DecisionTransformerConfig",
        {
            "hidden_size": WIDTH,
            "n_layer": LAYERS,
            "n_head": 4,
            "state_dim": 6,
            "act_dim": 3,
            "max_ep_len": 40,
            "n_inner": INNER,
        },
        {
            "states": Input(("batch", "sequence", 6)),
            "actions": Input(("batch", "sequence", 3)),
            "returns_to_go": Input(("batch", "sequence", 1)),
            "timesteps": Input(("batch", "sequence"), "labels", 40),
            "attention_mask": Input(("batch", "sequence"), "mask"),
        },
        ("action_preds", "state_preds"),
        "decoder",
    ),
}


def _moonshine() -> Network:
    from further import instance

    made = instance(
        "MoonshineForConditionalGeneration",
        "MoonshineConfig",
        vocab_size=100,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        encoder_num_hidden_layers=LAYERS,
        decoder_num_hidden_layers=LAYERS,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=4,
        encoder_num_key_value_heads=4,
        decoder_num_key_value_heads=4,
        max_position_embeddings=64,
        decoder_start_token_id=1,
    )
    inputs = {"input_values": Input(("batch", 4000)), "decoder_input_ids": Input(("batch", "target"), "tokens")}
    network = Network(Named(made, tuple(inputs), ("logits",), use_cache=False).eval(), inputs, "audio")
    network.free["target"] = 5
    return network


def _vits() -> Network:
    from further import instance

    made = instance(
        "VitsModel",
        "VitsConfig",
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=LAYERS,
        window_size=4,
        num_attention_heads=2,
        ffn_dim=48,
        flow_size=32,
        spectrogram_bins=33,
        duration_predictor_filter_channels=32,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=2,
        posterior_encoder_num_wavenet_layers=2,
        upsample_initial_channel=32,
        upsample_rates=[4, 2],
        upsample_kernel_sizes=[8, 4],
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
        depth_separable_num_layers=2,
        duration_predictor_flow_bins=4,
        noise_scale=0.0,
        noise_scale_duration=0.0,
        use_stochastic_duration_prediction=False,
    )

    class Quiet(nn.Module):
        """Without noise, which would be random."""

        def __init__(self) -> None:
            super().__init__()
            self.model = made

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            random, torch.randn_like = torch.randn_like, torch.zeros_like
            try:
                return self.model(ids).waveform
            finally:
                torch.randn_like = random

    return Network(Quiet().eval(), {"input_ids": Input((1, "sequence"), "tokens", 40)}, "audio")


def _bark() -> Network:
    from further import instance

    made = instance(
        "BarkFineModel",
        "BarkFineConfig",
        block_size=32,
        input_vocab_size=50,
        output_vocab_size=50,
        num_layers=LAYERS,
        num_heads=4,
        hidden_size=WIDTH,
        n_codes_total=4,
        n_codes_given=1,
    )

    class Fine(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = made

        def forward(self, codes: torch.Tensor) -> torch.Tensor:
            return self.model(2, codes)[0]

    return Network(Fine().eval(), {"codes": Input(("batch", "sequence", 4), "labels", 50)}, "audio")


def _times_fm() -> Network:
    from further import instance

    made = instance(
        "TimesFmModel",
        "TimesFmConfig",
        patch_length=8,
        context_length=32,
        horizon_length=8,
        freq_size=3,
        num_hidden_layers=LAYERS,
        hidden_size=WIDTH,
        intermediate_size=INNER,
        head_dim=WIDTH // 4,
        num_attention_heads=4,
    )
    inputs = {
        "past_values": Input(("batch", 32)),
        "past_values_padding": Input(("batch", 32), "mask"),
        "freq": Input(("batch", 1), "labels", 3),
    }
    return Network(Named(made, tuple(inputs), ("last_hidden_state",)).eval(), inputs, "series")


def _blip() -> Network:
    import transformers

    text = _text(encoder_hidden_size=WIDTH, pad_token_id=0, bos_token_id=1, eos_token_id=2, sep_token_id=2)
    config = transformers.BlipConfig(
        text_config=text, vision_config=VISION, projection_dim=32, image_text_hidden_size=32
    )
    config._attn_implementation = "eager"
    made = transformers.BlipForConditionalGeneration(config).eval()
    inputs = {"pixel_values": Input(("batch", 3, 32, 32), "image"), "input_ids": Input(("batch", "sequence"), "tokens")}
    return Network(Outputs(made, tuple(inputs), ("logits",)), inputs, "several senses")


class Merged(nn.Module):
    """A decoder that reads its cache or begins anew, as a scripted condition says."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.entry = nn.Embedding(100, 32), nn.Linear(32, 96)
        self.norm, self.last = nn.LayerNorm(32), nn.Linear(32, 100)
        self.first = nn.Parameter(torch.randn(1, 1, 32) * 0.1)

    def forward(self, ids: torch.Tensor, use_cache: torch.Tensor, keys: torch.Tensor, values: torch.Tensor):  # type: ignore[no-untyped-def]
        x = self.table(ids)
        q, k, v = self.entry(self.norm(x)).chunk(3, -1)
        if bool(use_cache):
            k = torch.cat([keys, k], 1)
            v = torch.cat([values, v], 1)
        else:
            k = torch.cat([self.first.expand(k.shape[0], 1, 32), k], 1)
            v = torch.cat([self.first.expand(v.shape[0], 1, 32) * 0.5, v], 1)
        weights = torch.softmax(torch.matmul(q, k.transpose(1, 2)) * 0.17, -1)
        x = x + torch.matmul(weights, v)
        return self.last(self.norm(x)), k, v


@network
def _merged() -> Network:
    made = torch.jit.script(Merged().eval())
    past = Input(("batch", "past", 32))
    inputs = {
        "input_ids": Input(("batch", "sequence"), "tokens"),
        "use_cache": Input((1,), "labels", 2),
        "keys": past,
        "values": past,
    }
    made = Network(made, inputs, "decoder with cache")
    made.free["past"] = 4
    return made


class Detector(nn.Module):
    """A speech detector for two sampling rates, each with layers of its own, whose state is given on."""

    def __init__(self) -> None:
        super().__init__()
        self.fast, self.slow = nn.Conv1d(1, 24, 16, 8), nn.Conv1d(1, 24, 8, 4)
        self.cell, self.last = nn.LSTMCell(24, 24), nn.Linear(24, 1)

    def forward(self, wave: torch.Tensor, state: torch.Tensor, rate: torch.Tensor):  # type: ignore[no-untyped-def]
        if bool(rate == 1):
            x = self.fast(nn.functional.pad(wave.unsqueeze(1), [4, 4], mode="reflect"))
        else:
            x = self.slow(nn.functional.pad(wave.unsqueeze(1), [2, 2], mode="reflect")).relu()
        h, c = self.cell(x.abs().mean(-1), (state[0], state[1]))
        return torch.sigmoid(self.last(h)), torch.stack([h, c])


@network
def _detector_of_two_rates() -> Network:
    inputs = {"wave": Input(("batch", 160)), "state": Input((2, "batch", 24)), "rate": Input((1,), "labels", 2)}
    return Network(torch.jit.script(Detector().eval()), inputs, "audio")


class Spectra(nn.Module):
    """A mask on a spectrum by torch.stft, and the wave back through a transposed convolution of its basis."""

    def __init__(self, length: int = 32) -> None:
        super().__init__()
        self.length = length
        self.register_buffer("window", torch.hann_window(length))
        bins = length // 2 + 1
        self.mask = nn.Sequential(
            nn.Conv1d(bins, 24, 3, padding=1), nn.PReLU(24), nn.Conv1d(24, bins, 3, padding=1), nn.Sigmoid()
        )
        basis = torch.fft.rfft(torch.eye(length)).T
        back = torch.cat([basis.real, basis.imag], 0) / length * 2
        self.register_buffer("back", (back * self.window).unsqueeze(1).contiguous())

    def forward(self, wave: torch.Tensor) -> Any:
        spectrum = torch.view_as_real(
            torch.stft(wave, self.length, self.length // 4, window=self.window, center=False, return_complex=True)
        )
        size = (spectrum.square().sum(-1) + 1e-8).sqrt()
        mask = self.mask(torch.log1p(size))
        parts = torch.cat([spectrum[..., 0] * mask, spectrum[..., 1] * mask], 1)
        return nn.functional.conv_transpose1d(parts, self.back, stride=self.length // 4).squeeze(1), size


@network
def _spectral_mask() -> Network:
    return Network(Spectra().eval(), {"wave": Input(("batch", 512))}, "audio")


class Mel(nn.Module):
    """Log-mel features in the graph, normalized per channel, before convolutions over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hamming_window(64))
        self.register_buffer("filters", torch.rand(20, 33) ** 4)
        self.body = nn.Sequential(nn.Conv1d(20, 32, 5, 2, 2), nn.GELU(), nn.Conv1d(32, 32, 3, 1, 1), nn.GELU())
        self.last = nn.Linear(32, 12)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        wave = torch.cat([wave[:, :1], wave[:, 1:] - 0.97 * wave[:, :-1]], 1)
        wave = nn.functional.pad(wave.unsqueeze(1), (32, 32), mode="reflect").squeeze(1)
        spectrum = torch.view_as_real(torch.stft(wave, 64, 16, window=self.window, center=False, return_complex=True))
        power = spectrum.pow(2).sum(-1)
        mel = torch.log10(torch.clamp(torch.matmul(self.filters, power), min=1e-10))
        mel = torch.maximum(mel, mel.amax((1, 2), keepdim=True) - 8.0)
        mel = (mel - mel.mean(-1, keepdim=True)) / (mel.std(-1, keepdim=True) + 1e-5)
        return self.last(self.body(mel).transpose(1, 2)).log_softmax(-1)


@network
def _mel_features() -> Network:
    return Network(Mel().eval(), {"wave": Input(("batch", 800))}, "audio")


class Styled(nn.Module):
    """A voice as StyleTTS makes it: LSTMs over text, durations, repeated frames, adaptive normalization, sines."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.text = nn.Embedding(40, 32), nn.LSTM(32, 16, batch_first=True, bidirectional=True)
        self.convs = nn.ModuleList(nn.Conv1d(32, 32, 5, padding=2) for _ in range(2))
        self.duration, self.style = nn.Linear(32, 1), nn.Linear(16, 64)
        self.pitch, self.shared = nn.Conv1d(32, 1, 3, padding=1), nn.LSTM(32, 16, batch_first=True, bidirectional=True)
        self.norm, self.up = nn.InstanceNorm1d(32, affine=True), nn.ConvTranspose1d(32, 16, 8, 4, 2)
        self.alpha, self.last = nn.Parameter(torch.rand(1, 16, 1) + 0.5), nn.Conv1d(16, 1, 7, padding=3)

    def forward(self, ids: torch.Tensor, style: torch.Tensor) -> Any:
        x = self.table(ids)
        for conv in self.convs:
            x = x + nn.functional.leaky_relu(conv(x.transpose(1, 2)), 0.2).transpose(1, 2)
        x = self.text(x)[0]
        lengths = torch.round(torch.sigmoid(self.duration(x)).squeeze(-1) * 4).clamp(min=1).long()
        ends = lengths.cumsum(-1)
        frames = torch.arange(24).unsqueeze(0).unsqueeze(0)
        places = ((frames < ends.unsqueeze(-1)) & (frames >= (ends - lengths).unsqueeze(-1))).float()
        x = self.shared(torch.matmul(places.transpose(1, 2), x))[0].transpose(1, 2)
        scale, shift = self.style(style).unsqueeze(-1).chunk(2, 1)
        x = (1 + scale) * self.norm(x) + shift
        tone = nn.functional.interpolate(self.pitch(x), scale_factor=4.0, mode="linear")
        x = self.up(x) + torch.sin(torch.cumsum(tone, -1) * 0.3)
        x = x + torch.sin(self.alpha * x) ** 2 / self.alpha
        return torch.tanh(self.last(x)), lengths


@network
def _styled_voice() -> Network:
    return Network(
        Styled().eval(), {"ids": Input(("batch", "sequence"), "tokens", 40), "style": Input(("batch", 16))}, "audio"
    )


class Blocks(nn.Module):
    """N-BEATS: blocks that take what they explain away; one basis of polynomials, one of waves, one learned."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies = nn.ModuleList(
            nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 12))
            for _ in range(3)
        )
        time = torch.arange(32, dtype=torch.float32) / 32
        self.register_buffer("trend", torch.stack([time**i for i in range(6)]))
        self.register_buffer(
            "waves", torch.stack([f(2 * torch.pi * i * time) for i in (1, 2, 3) for f in (torch.cos, torch.sin)])
        )
        self.free = nn.Parameter(torch.randn(6, 32) * 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros_like(x[:, :8])
        for body, basis in zip(self.bodies, (self.trend, self.waves, self.free), strict=True):
            theta = body(x)
            x = x - torch.einsum("bp,pt->bt", theta[:, :6], basis[:, :24])
            total = total + torch.einsum("bp,pt->bt", theta[:, 6:], basis[:, 24:])
        return total


@network
def _residual_forecast() -> Network:
    return Network(Blocks().eval(), {"x": Input(("batch", 24))}, "series")


class Gated(nn.Module):
    """A gated residual network, as temporal fusion transformers have them."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.a, self.b, self.gate = nn.Linear(width, out), nn.Linear(out, out), nn.Linear(out, 2 * out)
        self.skip, self.norm = nn.Linear(width, out), nn.LayerNorm(out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.skip(x) + nn.functional.glu(self.gate(self.b(nn.functional.elu(self.a(x)))), -1))


class Fusion(nn.Module):
    """Temporal fusion: chosen variables, an LSTM from a computed state, attention that shares its values, quantiles."""

    def __init__(self) -> None:
        super().__init__()
        self.each = nn.ModuleList(Gated(1, 16) for _ in range(4))
        self.choose, self.context = Gated(64, 4), nn.Linear(6, 32)
        self.past, self.future = nn.LSTM(16, 16, batch_first=True), nn.LSTM(16, 16, batch_first=True)
        self.attend, self.after, self.last = (
            nn.MultiheadAttention(16, 2, batch_first=True),
            Gated(16, 16),
            nn.Linear(16, 3),
        )

    def forward(self, x: torch.Tensor, still: torch.Tensor) -> torch.Tensor:
        parts = torch.stack([part(x[..., i : i + 1]) for i, part in enumerate(self.each)], -2)
        chosen = (torch.softmax(self.choose(parts.flatten(-2)), -1).unsqueeze(-1) * parts).sum(-2)
        h, c = self.context(still).unsqueeze(0).chunk(2, -1)
        past, state = self.past(chosen[:, :10], (h.contiguous(), c.contiguous()))
        y = torch.cat([past, self.future(chosen[:, 10:], state)[0]], 1)
        mask = torch.triu(torch.ones(14, 14, dtype=torch.bool), 1)
        y = self.after(self.attend(y, y, y, attn_mask=mask, need_weights=False)[0] + y)
        return self.last(y[:, 10:])


@network
def _temporal_fusion() -> Network:
    return Network(Fusion().eval(), {"x": Input(("batch", 14, 4)), "still": Input(("batch", 6))}, "series")


class Sparse(nn.Module):
    """TabNet: columns chosen by sparsemax step by step, ghost normalization, gated units."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(10)
        self.shared, self.steps = nn.Linear(10, 32), nn.ModuleList(nn.Linear(16, 32) for _ in range(2))
        self.choose = nn.ModuleList(nn.Sequential(nn.Linear(8, 10), nn.BatchNorm1d(10)) for _ in range(2))
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.norm(x)
        y = nn.functional.glu(self.shared(x))
        prior, total, masks = torch.ones_like(x), torch.zeros_like(y[:, :8]), torch.zeros_like(x)
        for choose, step in zip(self.choose, self.steps, strict=True):
            raw = choose(y[:, 8:]) * prior
            z = torch.sort(raw, -1, descending=True)[0]
            sums = z.cumsum(-1) - 1
            count = torch.arange(1, 11, dtype=torch.float32)
            inside = (count * z > sums).sum(-1, keepdim=True)
            mask = torch.clamp(raw - sums.gather(-1, inside - 1) / inside.to(raw.dtype), min=0)
            prior, masks = prior * (1.3 - mask), masks + mask
            y = (nn.functional.glu(step(nn.functional.glu(self.shared(x * mask)))) + y) * 0.70710678
            total = total + torch.relu(y[:, :8])
        return self.last(total).softmax(-1), masks


@network
def _sparse_table() -> Network:
    return Network(Sparse().eval(), {"x": Input(("batch", 10))}, "table")


class Recommender(nn.Module):
    """DLRM: bags of classes whose embeddings are added up, averaged or compared, and products of all pairs."""

    def __init__(self, mode: str) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(30, 8, mode=mode) for _ in range(3))
        self.bottom = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(14, 24), nn.ReLU(), nn.Linear(24, 1))
        self.register_buffer("upper", torch.triu_indices(4, 4, 1))

    def forward(self, numbers: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
        x = self.bottom(numbers)
        columns = torch.stack([x, *(bag(classes[:, i]) for i, bag in enumerate(self.bags))], 1)
        pairs = torch.matmul(columns, columns.transpose(1, 2))[:, self.upper[0], self.upper[1]]
        return torch.sigmoid(self.top(torch.cat([x, pairs], 1)))


def _recommender(mode: str) -> Callable[[], Network]:
    inputs = {"numbers": Input(("batch", 5)), "classes": Input(("batch", 3, 4), "labels", 30)}
    return lambda: Network(Recommender(mode).eval(), inputs, "table")


class Reduced(nn.Module):
    """Graph layers whose messages meet by sums, means, products or extremes (ScatterElements, ScatterND)."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how, self.a, self.b = how, nn.Linear(12, 16), nn.Linear(16, 16)
        self.mine, self.last = nn.Linear(16, 16, bias=False), nn.Linear(16, 5)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.a(nodes))
        for _ in range(2):
            message = self.b(x)[edges[0]]
            place = edges[1].unsqueeze(-1).expand(-1, 16)
            x = torch.relu(self.mine(x) + torch.scatter_reduce(x, 0, place, message, self.how, include_self=True))
        return self.last(x).log_softmax(-1)


def _reduced(how: str) -> Callable[[], Network]:
    def make() -> Network:
        inputs = {"nodes": Input(("nodes", 12)), "edges": Input((2, "edges"), "labels", 8)}
        made = Network(Reduced(how).eval(), inputs, "graph")
        made.free |= {"nodes": 8, "edges": 20}
        return made

    return make


NETWORKS |= {
    "recommender_sum": _recommender("sum"),
    "recommender_mean": _recommender("mean"),
    "recommender_max": _recommender("max"),
    "messages_sum": _reduced("sum"),
    "messages_max": _reduced("amax"),
    "messages_min": _reduced("amin"),
    "messages_product": _reduced("prod"),
}


class Linear(nn.Module):
    """Linear attention by a delta rule, in chunks: products of triangles, cumulative sums, a state given on."""

    def __init__(self) -> None:
        super().__init__()
        self.entry, self.gates = nn.Linear(32, 96, bias=False), nn.Linear(32, 8)
        self.mixed, self.norm, self.last = nn.Conv1d(96, 96, 4, groups=96), nn.RMSNorm(8), nn.Linear(32, 32)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> Any:
        y = self.entry(x).transpose(1, 2)
        y = nn.functional.silu(self.mixed(nn.functional.pad(y, (3, 0)))).transpose(1, 2)
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in y.chunk(3, -1))
        q, k = nn.functional.normalize(q, dim=-1), nn.functional.normalize(k, dim=-1)
        decay, beta = self.gates(x).transpose(1, 2).chunk(2, 1)
        decay = -nn.functional.softplus(decay).cumsum(-1)
        between = torch.tril((decay.unsqueeze(-1) - decay.unsqueeze(-2)).exp())
        inner = torch.matmul(q, k.transpose(-1, -2)) * between
        v = v * torch.sigmoid(beta).unsqueeze(-1)
        read = torch.matmul(q * decay.exp().unsqueeze(-1), state) + torch.matmul(inner, v)
        left = (decay[..., -1:] - decay).exp().unsqueeze(-1)
        state = state * decay[..., -1:].exp().unsqueeze(-1) + torch.matmul((k * left).transpose(-1, -2), v)
        return self.last(self.norm(read).transpose(1, 2).flatten(2)), state


@network
def _linear_attention() -> Network:
    return Network(Linear().eval(), {"x": Input(("batch", "sequence", 32)), "state": Input(("batch", 4, 8, 8))}, "scan")
