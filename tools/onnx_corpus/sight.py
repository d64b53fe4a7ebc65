"""Networks of images and films in the corpus: segmentation, prompts, detectors, poses, depth, images of any size.

They enter themselves into `NETWORKS` as those of networks.py do, and are as small as their makers' arguments allow.
"""

from collections.abc import Callable
from typing import Any

import torch
from families import NETWORKS, PIXELS
from further import instance
from networks import (
    INNER,
    LAYERS,
    PATCHES,
    WIDTH,
    Input,
    Network,
    network,
    published,
    timm_network,
    vision,
)
from senses import Named, _text
from torch import nn


class Only(nn.Module):
    """A module with one of its results, by name."""

    def __init__(self, module: nn.Module, keep: str) -> None:
        super().__init__()
        self.module, self.keep = module, keep

    def forward(self, *values: torch.Tensor) -> Any:
        return self.module(*values)[self.keep]


def _segmentation(name: str, **options: Any) -> Callable[[], Network]:
    def make() -> Network:
        import torchvision

        made = getattr(torchvision.models.segmentation, name)(
            weights=None, weights_backbone=None, num_classes=4, **options
        )
        return Network(Only(made, "out").eval(), {"image": Input(("batch", 3, 64, 64), "image")}, "segmentation")

    return make


def _film(name: str, frames: int, size: int, **options: Any) -> Callable[[], Network]:
    def make() -> Network:
        import torchvision

        made = getattr(torchvision.models.video, name)(weights=None, num_classes=10, **options).eval()
        return Network(made, {"clip": Input(("batch", 3, frames, size, size), "image")}, "video")

    return make


NETWORKS |= {
    "fcn": _segmentation("fcn_resnet50"),
    "lraspp": _segmentation("lraspp_mobilenet_v3_large"),
    "resnet_2d_and_1d": _film("r2plus1d_18", 4, 32),
    "cait": timm_network("cait_xxs24_224", 32, img_size=32, depth=2, embed_dim=64),
    "rt_detr": lambda: published(
        "RTDetrForObjectDetection",
        "RTDetrConfig",
        {
            "backbone_config": {
                "model_type": "rt_detr_resnet",
                "embedding_size": 8,
                "hidden_sizes": [8, 12, 16, 24],
                "depths": [1] * 4,
                "layer_type": "basic",
                "out_features": ["stage2", "stage3", "stage4"],
            },
            "encoder_hidden_dim": 32,
            "encoder_in_channels": [12, 16, 24],
            "encoder_ffn_dim": 48,
            "encoder_attention_heads": 4,
            "d_model": 32,
            "decoder_in_channels": [32, 32, 32],
            "decoder_ffn_dim": 48,
            "decoder_layers": 1,
            "decoder_attention_heads": 4,
            "num_queries": 10,
            "num_labels": 4,
        },
        {"pixel_values": Input(("batch", 3, 64, 64), "image")},
        ("logits", "pred_boxes"),
        "detector",
    ),
    "depth_anything": vision(
        "DepthAnythingForDepthEstimation",
        "DepthAnythingConfig",
        "predicted_depth",
        "depth",
        32,
        backbone_config={
            "model_type": "dinov2",
            **PATCHES,
            "num_hidden_layers": 4,
            "out_features": ["stage1", "stage2", "stage3", "stage4"],
            "reshape_hidden_states": False,
        },
        patch_size=8,
        reassemble_hidden_size=WIDTH,
        neck_hidden_sizes=[16, 16, 24, 24],
        fusion_hidden_size=16,
        head_hidden_size=8,
    ),
    "glpn": vision(
        "GLPNForDepthEstimation",
        "GLPNConfig",
        "predicted_depth",
        "depth",
        64,
        hidden_sizes=[16, 24, 32, 40],
        depths=[1, 1, 1, 1],
        num_attention_heads=[1, 2, 2, 4],
        mlp_ratios=[2, 2, 2, 2],
        decoder_hidden_size=16,
    ),
    "vit_pose": vision(
        "VitPoseForPoseEstimation",
        "VitPoseConfig",
        "heatmaps",
        "pose",
        32,
        backbone_config={
            "model_type": "vitpose_backbone",
            **PATCHES,
            "image_size": [32, 32],
            "patch_size": [8, 8],
            "out_features": ["stage2"],
        },
        num_labels=5,
        use_simple_decoder=False,
    ),
    "dinov3": vision("DINOv3ViTModel", "DINOv3ViTConfig", "last_hidden_state", num_register_tokens=2, **PATCHES),
    "hiera": vision(
        "HieraModel",
        "HieraConfig",
        "last_hidden_state",
        size=64,
        image_size=[64, 64],
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 4],
    ),
    "restored_swin": vision(
        "Swin2SRForImageSuperResolution",
        "Swin2SRConfig",
        "reconstruction",
        image_size=32,
        embed_dim=24,
        depths=[2],
        num_heads=[4],
        window_size=4,
    ),
    "focalnet": vision(
        "FocalNetModel",
        "FocalNetConfig",
        "last_hidden_state",
        size=64,
        image_size=64,
        embed_dim=16,
        hidden_sizes=[16, 32],
        depths=[1, 1],
        focal_levels=[2, 2],
        focal_windows=[3, 3],
    ),
    "donut": vision(
        "DonutSwinModel",
        "DonutSwinConfig",
        "last_hidden_state",
        image_size=64,
        size=64,
        embed_dim=16,
        depths=[1, 1],
        num_heads=[2, 2],
        window_size=4,
    ),
    "vjepa": lambda: published(
        "VJEPA2Model",
        "VJEPA2Config",
        {
            "crop_size": 32,
            "patch_size": 8,
            "frames_per_clip": 4,
            "hidden_size": WIDTH,
            "num_attention_heads": 4,
            "num_hidden_layers": LAYERS,
            "mlp_ratio": 2,
            "pred_hidden_size": 48,
            "pred_num_attention_heads": 4,
            "pred_num_hidden_layers": 1,
        },
        {"pixel_values_videos": Input(("batch", 4, 3, 32, 32), "image")},
        ("last_hidden_state",),
        "video",
    ),
    "clip_segments": lambda: _named(
        instance(
            "CLIPSegForImageSegmentation",
            "CLIPSegConfig",
            text_config={**_text(), "projection_dim": 32},
            vision_config={**PATCHES, "projection_dim": 32},
            projection_dim=32,
            extract_layers=[0, 1],
            reduce_dim=16,
            decoder_num_attention_heads=4,
            decoder_intermediate_size=48,
        ),
        {"input_ids": Input(("batch", 6), "tokens"), "pixel_values": PIXELS},
        ("logits",),
        "segmentation",
    ),
}


def _named(model: nn.Module, inputs: dict[str, Input], keep: tuple[str, ...], family: str) -> Network:
    """A model of `transformers` called by the names of `inputs`, with the results of `keep`."""
    return Network(Named(model, tuple(inputs), keep).eval(), inputs, family)


SAM = {
    "vision_config": {
        "hidden_size": WIDTH,
        "output_channels": 32,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "image_size": 64,
        "patch_size": 8,
        "mlp_dim": INNER,
        "window_size": 3,
        "global_attn_indexes": [1],
        "num_pos_feats": 16,
    },
    "prompt_encoder_config": {"hidden_size": 32, "image_size": 64, "patch_size": 8, "mask_input_channels": 8},
    "mask_decoder_config": {
        "hidden_size": 32,
        "mlp_dim": 48,
        "num_attention_heads": 4,
        "iou_head_hidden_dim": 32,
    },
}


class Embedding(nn.Module):
    """The image's half of a model that segments by prompts."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixels: torch.Tensor) -> Any:
        return self.model.get_image_embeddings(pixels)  # type: ignore[operator]


class Prompted(nn.Module):
    """The other half: points and their labels, or boxes, over the image's embedding."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: torch.Tensor, points: torch.Tensor, labels: torch.Tensor) -> Any:
        found = self.model(image_embeddings=image, input_points=points, input_labels=labels, multimask_output=True)
        return found.pred_masks, found.iou_scores


@network
def _sam_image() -> Network:
    return Network(
        Embedding(instance("SamModel", "SamConfig", **SAM)),
        {"image": Input(("batch", 3, 64, 64), "image")},
        "segmentation",
    )


@network
def _sam_prompts() -> Network:
    inputs = {
        "image": Input((1, 32, 8, 8)),
        "points": Input((1, 1, "points", 2), "image"),
        "labels": Input((1, 1, "points"), "labels", 2),
    }
    made = Network(Prompted(instance("SamModel", "SamConfig", **SAM)), inputs, "segmentation")
    made.free["points"] = 3
    return made


class Patches(nn.Module):
    """The vision half of Qwen's models: patches of one image of fixed size."""

    def __init__(self, model: nn.Module, lines: int, columns: int) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("grid", torch.tensor([[1, lines, columns]]))

    def forward(self, patches: torch.Tensor) -> Any:
        found = self.model(patches, grid_thw=self.grid)
        found = getattr(found, "pooler_output", found)
        return found[0] if isinstance(found, tuple) else found


QWEN = {"depth": LAYERS, "num_heads": 4, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2}


def _qwen(module: str, cls: str, config: str, **options: Any) -> Callable[[], Network]:
    def make() -> Network:
        import importlib

        place = f"transformers.models.{module}"
        settings = getattr(importlib.import_module(f"{place}.configuration_{module}"), config)(**QWEN, **options)
        settings._attn_implementation = "eager"
        model = getattr(importlib.import_module(f"{place}.modeling_{module}"), cls)(settings)
        return Network(Patches(model, 4, 6).eval(), {"patches": Input((24, 3 * 2 * 4 * 4), "image")}, "several senses")

    return make


NETWORKS |= {
    "qwen25_sight": _qwen(
        "qwen2_5_vl",
        "Qwen2_5_VisionTransformerPretrainedModel",
        "Qwen2_5_VLVisionConfig",
        hidden_size=WIDTH,
        intermediate_size=INNER,
        out_hidden_size=48,
        window_size=16,
        fullatt_block_indexes=[1],
    ),
    "qwen3_sight": _qwen(
        "qwen3_vl",
        "Qwen3VLVisionModel",
        "Qwen3VLVisionConfig",
        hidden_size=WIDTH,
        intermediate_size=INNER,
        out_hidden_size=48,
        num_position_embeddings=16,
        deepstack_visual_indexes=[0],
    ),
    "trocr": lambda: _named(
        instance(
            "TrOCRForCausalLM",
            "TrOCRConfig",
            vocab_size=100,
            d_model=WIDTH,
            decoder_layers=LAYERS,
            decoder_attention_heads=4,
            decoder_ffn_dim=INNER,
            max_position_embeddings=64,
            cross_attention_hidden_size=48,
            use_cache=False,
        ),
        {"input_ids": Input(("batch", "sequence"), "tokens"), "encoder_hidden_states": Input(("batch", 9, 48))},
        ("logits",),
        "several senses",
    ),
}


def _free_sides(name: str) -> Callable[[], Network]:
    """A network of one image whose height and width are free, too."""

    def make() -> Network:
        made = NETWORKS[name]()
        [(image, value)] = made.inputs.items()
        made.inputs = {image: Input((*value.shape[:2], "height", "width"), value.kind)}
        return made

    return make


NETWORKS |= {
    f"{name}_of_any_size": _free_sides(name)
    for name in (
        "convnext",
        "depth_anything",
        "detector",
        "glpn",
        "latent_decoder",
        "pvt",
        "pyramid_to_sizes",
        "restored_swin",
        "segformer",
        "stylized",
        "swin",
        "swin2",
        "unet_bilinear",
    )
}
