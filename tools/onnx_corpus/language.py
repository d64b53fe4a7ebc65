"""Still more networks of the corpus: language and speech, beyond those that networks.py and further.py have.

They enter themselves into `NETWORKS` as those of networks.py do, and are as small.
"""

from collections.abc import Callable
from typing import Any

import torch
from further import BART, SIDE, SOURCE, T5, both_ends, instance, with_cache
from networks import (
    INNER,
    LAYERS,
    NETWORKS,
    SMALL,
    TOKENS,
    WAVES,
    WIDTH,
    Input,
    Network,
    decoder,
    encoder,
    network,
    published,
)
from torch import nn

TWO = {"num_key_value_heads": 2}
# Of three series of 32 values, cut into pieces.
PIECES = {
    "num_input_channels": 3,
    "context_length": 32,
    "patch_length": 8,
    "d_model": WIDTH,
    "num_attention_heads": 4,
    "num_hidden_layers": LAYERS,
    "ffn_dim": INNER,
}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_routed_experts": 4, "num_experts": 4}
LINEAR = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 12,
    "layer_types": ["linear_attention", "full_attention"][:LAYERS],
}
STATES = {"state_size": 8, "conv_kernel": 4, "expand": 2, "use_mambapy": False}


def _speech(cls: str, config: str, length: int = 800, **options: Any) -> Callable[[], Network]:
    """One of waves."""
    keep = "logits" if "CTC" in cls or "Classification" in cls else "last_hidden_state"
    inputs = {"input_values": Input(("batch", length))}
    return lambda: published(cls, config, {**WAVES, "vocab_size": 40, **options}, inputs, (keep,), "audio")


def _features(
    cls: str, config: str, shape: tuple[int | str, ...], name: str, keep: str, **options: Any
) -> Callable[[], Network]:
    return lambda: published(cls, config, options, {name: Input(shape)}, (keep,), "audio")


class Step(nn.Module):
    """One step of a decoder behind an encoder: keys and values of both attentions come in, the text's come back."""

    def __init__(self, model: nn.Module, layers: int) -> None:
        super().__init__()
        self.model, self.layers = model, layers

    def forward(self, ids: torch.Tensor, states: torch.Tensor, *past: torch.Tensor) -> Any:
        from transformers import DynamicCache, EncoderDecoderCache

        own, other = DynamicCache(), DynamicCache()
        for i in range(self.layers):
            own.update(past[4 * i], past[4 * i + 1], i)
            other.update(past[4 * i + 2], past[4 * i + 3], i)
        cache = EncoderDecoderCache(own, other)
        for i in range(self.layers):
            cache.is_updated[i] = True
        given = {"encoder_outputs": (states,), "decoder_input_ids": ids, "past_key_values": cache, "use_cache": True}
        result = self.model(**given)
        kept = result.past_key_values.self_attention_cache.layers
        return (result.logits, *(value for layer in kept for value in (layer.keys, layer.values)))


def _step(cls: str, config: str, **options: Any) -> Callable[[], Network]:
    def make() -> Network:
        inputs = {
            "decoder_input_ids": Input(("batch", 1), "tokens"),
            "encoder_hidden_states": Input(("batch", "sequence", WIDTH)),
        }
        for i in range(LAYERS):
            for length, owner in (("past", "decoder"), ("sequence", "encoder")):
                for part in ("key", "value"):
                    inputs[f"past_key_values.{i}.{owner}.{part}"] = Input(("batch", 4, length, WIDTH // 4))
        made = Network(Step(instance(cls, config, **options), LAYERS).eval(), inputs, "decoder with cache")
        made.free["past"] = 5
        return made

    return make


def _recurrent(cls: str, config: str, **options: Any) -> Callable[[], Network]:
    """A decoder of tokens alone, of fixed length: state spaces unroll over it."""
    given = {k: v for k, v in SMALL.items() if k != "attn_implementation"} | options
    inputs = {"input_ids": Input(("batch", 8), "tokens")}
    return lambda: published(cls, config, given, inputs, ("logits",), "scan")


WHISPER = {k: v for k, v in BART.items() if k != "max_position_embeddings"} | {
    "num_mel_bins": 20,
    "max_source_positions": 40,
    "max_target_positions": 32,
    "eos_token_id": 3,
    "bos_token_id": 2,
}

NETWORKS |= {
    "funnel": lambda: published(
        "FunnelModel",
        "FunnelConfig",
        {
            **{k: v for k, v in SMALL.items() if k != "num_hidden_layers"},
            "block_sizes": [1, 1],
            "d_model": WIDTH,
            "n_head": 4,
            "d_head": 12,
            "d_inner": INNER,
        },
        TOKENS,
        ("last_hidden_state",),
        "encoder",
    ),
    "longformer": encoder("LongformerModel", "LongformerConfig", attention_window=4),
    "nystromformer": encoder("NystromformerModel", "NystromformerConfig", num_landmarks=4, segment_means_seq_len=4),
    "nomic_bert": encoder("NomicBertModel", "NomicBertConfig"),
    "megatron_bert": encoder("MegatronBertModel", "MegatronBertConfig"),
    "rembert": encoder("RemBertModel", "RemBertConfig", input_embedding_size=32, output_embedding_size=32),
    "ernie": encoder("ErnieModel", "ErnieConfig"),
    "roberta_prelayernorm": encoder("RobertaPreLayerNormModel", "RobertaPreLayerNormConfig"),
    "xlm_roberta_xl": encoder("XLMRobertaXLModel", "XLMRobertaXLConfig"),
    "data2vec_text": encoder("Data2VecTextModel", "Data2VecTextConfig"),
    "bert_masked": encoder("BertForMaskedLM", "BertConfig", "logits"),
    "roberta_classes": encoder("RobertaForSequenceClassification", "RobertaConfig", "logits"),
    "deberta_v2_classes": encoder(
        "DebertaV2ForSequenceClassification",
        "DebertaV2Config",
        "logits",
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=8,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        conv_kernel_size=3,
    ),
    "modern_bert_masked": encoder(
        "ModernBertForMaskedLM", "ModernBertConfig", "logits", pad_token_id=0, cls_token_id=1, sep_token_id=2
    ),
    "eurobert": encoder("EuroBertModel", "EuroBertConfig", **TWO, pad_token_id=0),
    "jina3": encoder("JinaEmbeddingsV3Model", "JinaEmbeddingsV3Config"),
    "flaubert": encoder("FlaubertModel", "FlaubertConfig", emb_dim=WIDTH, n_layers=LAYERS, n_heads=4, n_words=100),
    "xlm": encoder("XLMModel", "XLMConfig", emb_dim=WIDTH, n_layers=LAYERS, n_heads=4, n_words=100),
    "fnet": lambda: published(
        "FNetModel",
        "FNetConfig",
        SMALL,
        {"input_ids": Input(("batch", 8), "tokens")},
        ("last_hidden_state",),
        "encoder",
    ),
    "layoutlm": encoder("LayoutLMModel", "LayoutLMConfig", max_2d_position_embeddings=64),
    "splinter": encoder("SplinterModel", "SplinterConfig"),
    "roc_bert": encoder("RoCBertModel", "RoCBertConfig", pronunciation_vocab_size=10, shape_vocab_size=10),
    "bert_generation": encoder("BertGenerationEncoder", "BertGenerationConfig"),
    "clip_text_projected": encoder("CLIPTextModelWithProjection", "CLIPTextConfig", "text_embeds", projection_dim=32),
    "siglip_text": encoder("SiglipTextModel", "SiglipTextConfig"),
    "mt5_encoder": encoder(
        "MT5EncoderModel", "MT5Config", d_model=WIDTH, d_kv=WIDTH // 4, d_ff=INNER, num_layers=LAYERS, num_heads=4
    ),
    "umt5": both_ends("UMT5ForConditionalGeneration", "UMT5Config", SOURCE, **T5),
    "longt5": both_ends("LongT5ForConditionalGeneration", "LongT5Config", SOURCE, **T5, local_radius=4),
    "switch": both_ends(
        "SwitchTransformersForConditionalGeneration", "SwitchTransformersConfig", SOURCE, **T5, num_experts=4
    ),
    "t5_gated": both_ends("T5ForConditionalGeneration", "T5Config", SOURCE, **T5, feed_forward_proj="gated-gelu"),
    "pegasus": both_ends("PegasusForConditionalGeneration", "PegasusConfig", SOURCE, **BART),
    "mbart": both_ends("MBartForConditionalGeneration", "MBartConfig", SOURCE, **BART),
    "m2m": both_ends("M2M100ForConditionalGeneration", "M2M100Config", SOURCE, **BART),
    "blenderbot": both_ends("BlenderbotSmallForConditionalGeneration", "BlenderbotSmallConfig", SOURCE, **BART),
    "speech_to_text": both_ends(
        "Speech2TextForConditionalGeneration",
        "Speech2TextConfig",
        Input(("batch", 64, 20)),
        "input_features",
        **{k: v for k, v in BART.items() if k != "max_position_embeddings"},
        input_feat_per_channel=20,
        conv_channels=32,
        max_source_positions=100,
        max_target_positions=64,
    ),
    "step_t5": _step("T5ForConditionalGeneration", "T5Config", **T5),
    "step_bart": _step("BartForConditionalGeneration", "BartConfig", **BART),
    "step_marian": _step("MarianMTModel", "MarianConfig", **BART, activation_function="silu"),
    "step_whisper": _step("WhisperForConditionalGeneration", "WhisperConfig", **WHISPER),
    "step_pegasus": _step("PegasusForConditionalGeneration", "PegasusConfig", **BART),
    "cached_mistral": with_cache("MistralForCausalLM", "MistralConfig", 2, **TWO, sliding_window=None),
    "cached_granite": with_cache("GraniteForCausalLM", "GraniteConfig", 2, **TWO),
    "cached_gemma3": with_cache("Gemma3ForCausalLM", "Gemma3TextConfig", 2, **SIDE, sliding_window=16),
    "cached_neox": with_cache("GPTNeoXForCausalLM", "GPTNeoXConfig"),
    "cached_bloom": with_cache("BloomForCausalLM", "BloomConfig", n_layer=LAYERS, n_head=4),
    "cached_falcon": with_cache("FalconForCausalLM", "FalconConfig", 1, multi_query=True, alibi=False),
    "cached_smollm3": with_cache("SmolLM3ForCausalLM", "SmolLM3Config", 2, **TWO, pad_token_id=0),
    "cached_olmoe": with_cache("OlmoeForCausalLM", "OlmoeConfig", 2, **TWO, num_experts=4, num_experts_per_tok=2),
    "olmo": decoder("OlmoForCausalLM", "OlmoConfig", **TWO),
    "olmo3": decoder("Olmo3ForCausalLM", "Olmo3Config", **TWO, sliding_window=8),
    "olmoe": decoder("OlmoeForCausalLM", "OlmoeConfig", **TWO, num_experts=4, num_experts_per_tok=2),
    "qwen2_experts": decoder(
        "Qwen2MoeForCausalLM", "Qwen2MoeConfig", **TWO, **EXPERTS, shared_expert_intermediate_size=32
    ),
    "qwen3_next": decoder(
        "Qwen3NextForCausalLM", "Qwen3NextConfig", **SIDE, **EXPERTS, **LINEAR, shared_expert_intermediate_size=32
    ),
    "phi_experts": decoder("PhimoeForCausalLM", "PhimoeConfig", **TWO, num_local_experts=4),
    "granite_experts": decoder(
        "GraniteMoeForCausalLM", "GraniteMoeConfig", **TWO, num_local_experts=4, num_experts_per_tok=2
    ),
    "deepseek_v3": decoder(
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        **EXPERTS,
        num_key_value_heads=4,
        n_group=2,
        topk_group=1,
        first_k_dense_replace=LAYERS - 1,
        q_lora_rank=24,
        kv_lora_rank=16,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=12,
    ),
    "gpt_oss": decoder(
        "GptOssForCausalLM", "GptOssConfig", **SIDE, num_local_experts=4, num_experts_per_tok=2, sliding_window=8
    ),
    "gemma3n": decoder(
        "Gemma3nForCausalLM",
        "Gemma3nTextConfig",
        **SIDE,
        vocab_size_per_layer_input=100,
        hidden_size_per_layer_input=16,
        num_kv_shared_layers=0,
        altup_num_inputs=2,
        laurel_rank=8,
        activation_sparsity_pattern=[0.95] + [0.0] * (LAYERS - 1),
    ),
    "lfm2": decoder("Lfm2ForCausalLM", "Lfm2Config", **TWO, full_attn_idxs=[LAYERS - 1] if LAYERS > 1 else []),
    "glm4": decoder("Glm4ForCausalLM", "Glm4Config", **SIDE, pad_token_id=0),
    "cohere2": decoder("Cohere2ForCausalLM", "Cohere2Config", **TWO, sliding_window=8),
    "exaone4": decoder("Exaone4ForCausalLM", "Exaone4Config", **TWO, sliding_window=8),
    "ernie45": decoder("Ernie4_5ForCausalLM", "Ernie4_5Config", **SIDE, pad_token_id=0),
    "hunyuan": decoder("HunYuanDenseV1ForCausalLM", "HunYuanDenseV1Config", **SIDE, pad_token_id=0),
    "helium": decoder("HeliumForCausalLM", "HeliumConfig", **SIDE, pad_token_id=0),
    "arcee": decoder("ArceeForCausalLM", "ArceeConfig", **TWO),
    "apertus": decoder("ApertusForCausalLM", "ApertusConfig", **TWO, pad_token_id=0),
    "seed_oss": decoder("SeedOssForCausalLM", "SeedOssConfig", **SIDE),
    "persimmon": decoder("PersimmonForCausalLM", "PersimmonConfig"),
    "bitnet": decoder("BitNetForCausalLM", "BitNetConfig", **TWO, pad_token_id=0),
    "nanochat": decoder("NanoChatForCausalLM", "NanoChatConfig", **TWO),
    "mpt": decoder("MptForCausalLM", "MptConfig", d_model=WIDTH, n_heads=4, n_layers=LAYERS, max_seq_len=64),
    "codegen": decoder(
        "CodeGenForCausalLM", "CodeGenConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4, rotary_dim=8, n_positions=64
    ),
    "ctrl": decoder("CTRLLMHeadModel", "CTRLConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4, dff=INNER, n_positions=64),
    "openai_gpt": decoder(
        "OpenAIGPTLMHeadModel", "OpenAIGPTConfig", n_embd=WIDTH, n_layer=LAYERS, n_head=4, n_positions=64
    ),
    "xglm": decoder(
        "XGLMForCausalLM", "XGLMConfig", d_model=WIDTH, ffn_dim=INNER, num_layers=LAYERS, attention_heads=4
    ),
    "biogpt": decoder("BioGptForCausalLM", "BioGptConfig"),
    "llama3_scaled": decoder(
        "LlamaForCausalLM",
        "LlamaConfig",
        **TWO,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        },
    ),
    "mamba": _recurrent("MambaForCausalLM", "MambaConfig", **STATES),
    "falcon_mamba": _recurrent("FalconMambaForCausalLM", "FalconMambaConfig", **STATES),
    "rwkv": _recurrent("RwkvForCausalLM", "RwkvConfig", attention_hidden_size=WIDTH, num_hidden_layers=2),
    "recurrent_gemma": _recurrent(
        "RecurrentGemmaForCausalLM",
        "RecurrentGemmaConfig",
        **SIDE,
        lru_width=WIDTH,
        attention_window_size=8,
        block_types=["recurrent", "attention"],
    ),
    "jamba": _recurrent(
        "JambaForCausalLM",
        "JambaConfig",
        **TWO,
        num_experts=2,
        use_mamba_kernels=False,
        mamba_d_state=4,
        mamba_dt_rank=4,
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        pad_token_id=0,
    ),
    "wav2vec2_letters": _speech(
        "Wav2Vec2ForCTC", "Wav2Vec2Config", feat_extract_norm="layer", do_stable_layer_norm=True
    ),
    "wav2vec2_conformer": _speech(
        "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", position_embeddings_type="relative"
    ),
    "wav2vec2_rotary": _speech("Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig", position_embeddings_type="rotary"),
    "wavlm": _speech("WavLMModel", "WavLMConfig", num_buckets=16, max_bucket_distance=32),
    "unispeech": _speech("UniSpeechSatModel", "UniSpeechSatConfig"),
    "sew": _speech("SEWModel", "SEWConfig", squeeze_factor=2),
    "sew_d": _speech("SEWDModel", "SEWDConfig", squeeze_factor=2, position_buckets=8, max_position_embeddings=64),
    "data2vec_audio": _speech(
        "Data2VecAudioModel", "Data2VecAudioConfig", num_conv_pos_embeddings=2, conv_pos_kernel_size=3
    ),
    "wav2vec2_classes": _speech("Wav2Vec2ForSequenceClassification", "Wav2Vec2Config", classifier_proj_size=16),
    "wav2vec2_bert": _features(
        "Wav2Vec2BertModel",
        "Wav2Vec2BertConfig",
        ("batch", 24, 40),
        "input_features",
        "last_hidden_state",
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=INNER,
        feature_projection_input_dim=40,
        left_max_position_embeddings=8,
        right_max_position_embeddings=4,
    ),
    "parakeet": _features(
        "ParakeetEncoder",
        "ParakeetEncoderConfig",
        ("batch", 64, 40),
        "input_features",
        "last_hidden_state",
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        intermediate_size=INNER,
        subsampling_conv_channels=16,
        num_mel_bins=40,
    ),
    "clap_audio": _features(
        "ClapAudioModel",
        "ClapAudioConfig",
        ("batch", 1, 128, 32),
        "input_features",
        "last_hidden_state",
        spec_size=64,
        num_mel_bins=32,
        window_size=4,
        patch_size=4,
        patch_stride=(4, 4),
        depths=[1, 1],
        num_attention_heads=[2, 4],
        patch_embeds_hidden_size=16,
        hidden_size=32,
    ),
    "clap_text": encoder("ClapTextModel", "ClapTextConfig"),
    "encodec": _features(
        "EncodecModel",
        "EncodecConfig",
        ("batch", 1, 640),
        "input_values",
        "audio_values",
        num_filters=4,
        hidden_size=16,
        codebook_size=32,
        codebook_dim=16,
        upsampling_ratios=[4, 2],
        num_lstm_layers=1,
        target_bandwidths=[30.0],
        normalize=False,
    ),
    "dac": _features(
        "DacModel",
        "DacConfig",
        ("batch", 1, 640),
        "input_values",
        "audio_values",
        encoder_hidden_size=4,
        downsampling_ratios=[4, 2],
        decoder_hidden_size=32,
        n_codebooks=2,
        codebook_size=32,
    ),
    "patch_tst": _features(
        "PatchTSTModel",
        "PatchTSTConfig",
        ("batch", 32, 3),
        "past_values",
        "last_hidden_state",
        **PIECES,
        patch_stride=8,
    ),
}


@network
def _vocoder() -> Network:
    made = instance(
        "SpeechT5HifiGan",
        "SpeechT5HifiGanConfig",
        model_in_dim=20,
        upsample_initial_channel=32,
        upsample_rates=[4, 2],
        upsample_kernel_sizes=[8, 4],
        resblock_kernel_sizes=[3, 5],
        resblock_dilation_sizes=[[1, 3], [1, 3]],
    )
    return Network(made, {"spectrogram": Input(("batch", "time", 20))}, "audio")
