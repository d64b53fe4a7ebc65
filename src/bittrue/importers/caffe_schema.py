"""The messages of network and weight files: field numbers, types and defaults, as the fork with quantization has them.

Only layers that are read have their parameters here; a text that holds others does not parse. Source: caffe.proto of
synopsys-caffe, commit 977ba36a.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .protobuf import message_classes

_MESSAGES = {
    "BlobShape": "repeated int64 dim = 1 packed",
    "BlobProto": """
        BlobShape shape = 7, repeated float data = 5 packed, repeated float diff = 6 packed,
        repeated double double_data = 8 packed, repeated double double_diff = 9 packed, int32 num = 1 default 0,
        int32 channels = 2 default 0, int32 height = 3 default 0, int32 width = 4 default 0
    """,
    "FillerParameter": """
        string type = 1 default constant, float value = 2 default 0, float min = 3 default 0, float max = 4 default 1,
        float mean = 5 default 0, float std = 6 default 1, int32 sparse = 7 default -1,
        VarianceNorm variance_norm = 8 default FAN_IN, repeated float diag_val = 9
    """,
    "NetParameter": """
        string name = 1, repeated string input = 3, repeated BlobShape input_shape = 8, repeated int32 input_dim = 4,
        bool force_backward = 5 default false, NetState state = 6, bool debug_info = 7 default false,
        repeated LayerParameter layer = 100, repeated V1LayerParameter layers = 2
    """,
    "NetState": "Phase phase = 1 default TEST, int32 level = 2 default 0, repeated string stage = 3",
    "NetStateRule": """
        Phase phase = 1, int32 min_level = 2, int32 max_level = 3, repeated string stage = 4,
        repeated string not_stage = 5
    """,
    "ParamSpec": """
        string name = 1, DimCheckMode share_mode = 2, float lr_mult = 3 default 1.0, float decay_mult = 4 default 1.0
    """,
    "LayerParameter": """
        string name = 1, string type = 2, repeated string bottom = 3, repeated string top = 4, Phase phase = 10,
        repeated float loss_weight = 5, repeated ParamSpec param = 6, repeated BlobProto blobs = 7,
        repeated bool propagate_down = 11, repeated NetStateRule include = 8, repeated NetStateRule exclude = 9,
        BiasParameter bias_param = 141, ConcatParameter concat_param = 104,
        ConvolutionParameter convolution_param = 106, DropoutParameter dropout_param = 108,
        EltwiseParameter eltwise_param = 110, FlattenParameter flatten_param = 135,
        InnerProductParameter inner_product_param = 117, InputParameter input_param = 143,
        PoolingParameter pooling_param = 121, PowerParameter power_param = 122, ReLUParameter relu_param = 123,
        ReshapeParameter reshape_param = 133, SigmoidParameter sigmoid_param = 124,
        SoftmaxParameter softmax_param = 125, bool reshape_every_iter = 157 default true,
        ResizeBilinearParameter resize_bilinear_param = 226,
        SpatialBatchingPoolingParameter spatial_batching_pooling_param = 279
    """,
    "ConvolutionParameter": """
        uint32 num_output = 1, bool bias_term = 2 default true, repeated uint32 pad = 3,
        repeated uint32 kernel_size = 4, repeated uint32 stride = 6, repeated uint32 dilation = 18,
        uint32 pad_h = 9 default 0, uint32 pad_w = 10 default 0, uint32 pad_type = 19 default 0,
        int32 pad_l = 26 default 0, int32 pad_r = 27 default 0, int32 pad_t = 28 default 0, int32 pad_b = 29 default 0,
        uint32 kernel_h = 11, uint32 kernel_w = 12, uint32 stride_h = 13, uint32 stride_w = 14,
        double input_scale = 30 default 1, double output_scale = 31 default 1, double weight_scale = 33 default 1,
        int32 input_zero_point = 35 default 0, int32 output_zero_point = 36 default 0,
        int32 weight_zero_point = 37 default 0, bool per_channel_scale_weight = 39 default false,
        bool per_channel_scale_output = 41 default false, bool submanifold_sparse = 42 default false,
        SaturateMethod saturate = 32 default None, QuantizeMethod quantize_method = 40 default tflite,
        uint32 group = 5 default 1, FillerParameter weight_filler = 7, FillerParameter bias_filler = 8,
        Engine engine = 15 default DEFAULT, int32 axis = 16 default 1, bool force_nd_im2col = 17 default false,
        bool weight_fixed = 23 default false, bool dis_mode = 20 default false, bool gen_mode = 21 default false,
        repeated uint32 shape_offset = 22
    """,
    "DropoutParameter": """
        float dropout_ratio = 1 default 0.5, bool sample_weights_test = 2 default false,
        bool scale_train = 3 default true
    """,
    "FlattenParameter": "int32 axis = 1 default 1, int32 end_axis = 2 default -1",
    "InnerProductParameter": """
        uint32 num_output = 1, bool bias_term = 2 default true, FillerParameter weight_filler = 3,
        FillerParameter bias_filler = 4, int32 axis = 5 default 1, bool transpose = 6 default false,
        bool weight_fixed = 7 default false, bool dis_mode = 8 default false, bool gen_mode = 9 default false,
        double input_scale = 11 default 1, double output_scale = 12 default 1, double weight_scale = 13 default 1,
        int32 input_zero_point = 15 default 0, int32 output_zero_point = 16 default 0,
        int32 weight_zero_point = 17 default 0, SaturateMethod saturate = 19 default None,
        QuantizeMethod quantize_method = 20 default tflite
    """,
    "InputParameter": """
        repeated BlobShape shape = 1, float output_scale = 2 default 1, int32 output_zero_point = 3 default 0
    """,
    "ReshapeParameter": """
        BlobShape shape = 1, int32 axis = 2 default 0, int32 num_axes = 3 default -1, int32 pixelshuffler = 4 default 1
    """,
    "BiasParameter": """
        int32 axis = 1 default 1, int32 num_axes = 2 default 1, FillerParameter filler = 3,
        double input_scale = 4 default 1, double output_scale = 5 default 1, double bias_scale = 6 default 1,
        int32 input_zero_point = 7 default 0, int32 output_zero_point = 8 default 0,
        int32 bias_zero_point = 9 default 0, SaturateMethod saturate = 10 default None,
        QuantizeMethod quantize_method = 11 default tflite
    """,
    "ConcatParameter": """
        int32 axis = 2 default 1, uint32 concat_dim = 1 default 1, repeated double input_scale = 3,
        double output_scale = 4 default 1, repeated int32 input_zero_point = 5, int32 output_zero_point = 6 default 0,
        SaturateMethod saturate = 7 default None, QuantizeMethod quantize_method = 8 default tflite
    """,
    "EltwiseParameter": """
        EltwiseOp operation = 1 default SUM, repeated float coeff = 2, bool stable_prod_grad = 3 default true,
        repeated double input_scale = 14, double output_scale = 15 default 1, repeated int32 input_zero_point = 16,
        int32 output_zero_point = 17 default 0, SaturateMethod saturate = 5 default None,
        QuantizeMethod quantize_method = 18 default tflite, int32 axis = 6 default 0
    """,
    "PoolingParameter": """
        PoolMethod pool = 1 default MAX, uint32 pad = 4 default 0, uint32 pad_h = 9 default 0,
        uint32 pad_w = 10 default 0, uint32 pad_type = 13 default 0, uint32 pad_l = 16 default 0,
        uint32 pad_r = 17 default 0, uint32 pad_t = 18 default 0, uint32 pad_b = 19 default 0, uint32 kernel_size = 2,
        uint32 kernel_h = 5, uint32 kernel_w = 6, uint32 stride = 3 default 1, uint32 stride_h = 7,
        uint32 stride_w = 8, uint32 output_shift_instead_division = 21 default 0, double input_scale = 30 default 1,
        double output_scale = 31 default 1, int32 input_zero_point = 35 default 0,
        int32 output_zero_point = 36 default 0, SaturateMethod saturate = 22 default None,
        QuantizeMethod quantize_method = 37 default tflite, Engine engine = 11 default DEFAULT,
        bool global_pooling = 12 default false, bool ceil_mode = 14 default true,
        RoundMode round_mode = 15 default CEIL
    """,
    "PowerParameter": """
        float power = 1 default 1.0, float scale = 2 default 1.0, float shift = 3 default 0.0,
        SaturateMethod saturate = 4 default None, QuantizeMethod quantize_method = 5 default tflite
    """,
    "ReLUParameter": """
        float negative_slope = 1 default 0, bool relu6 = 3 default false, float maximum = 6 default 0,
        float minimum = 7 default 0, double input_scale = 13 default 1, double output_scale = 14 default 1,
        int32 input_zero_point = 15 default 0, int32 output_zero_point = 16 default 0,
        SaturateMethod saturate = 4 default None, Engine engine = 2 default DEFAULT
    """,
    "ResizeBilinearParameter": """
        bool align_corners = 1 default false, int32 output_height = 2, int32 output_width = 3,
        string data_format = 4 default NHWC, float scale_height = 5 default 1, float scale_width = 6 default 1,
        bool half_pixel_centers = 7 default false, bool pytorch_half_pixel = 8 default false, int32 output_depth = 9,
        float scale_depth = 10 default 1, double input_scale = 20 default 1, double output_scale = 21 default 1,
        int32 input_zero_point = 22 default 0, int32 output_zero_point = 23 default 0,
        SaturateMethod saturate = 24 default None, QuantizeMethod quantize_method = 25 default tflite
    """,
    "SigmoidParameter": """
        Engine engine = 1 default DEFAULT, double input_scale = 3 default 1, double output_scale = 4 default 1,
        int32 input_zero_point = 5 default 0, int32 output_zero_point = 6 default 0,
        SaturateMethod saturate = 7 default None
    """,
    "SoftmaxParameter": """
        Engine engine = 1 default DEFAULT, int32 axis = 2 default 1, double input_scale = 3 default 1,
        double output_scale = 4 default 1, int32 input_zero_point = 5 default 0, int32 output_zero_point = 6 default 0,
        SaturateMethod saturate = 7 default None
    """,
    "SpatialBatchingPoolingParameter": """
        PoolMethod pool = 1 default MAX, uint32 kernel_size = 2, uint32 stride = 3 default 1, uint32 pad = 4 default 0,
        uint32 kernel_h = 5, uint32 kernel_w = 6, uint32 stride_h = 7, uint32 stride_w = 8, uint32 pad_h = 9 default 0,
        uint32 pad_w = 10 default 0, Engine engine = 11 default DEFAULT, bool global_pooling = 12 default false,
        bool ceil_mode = 14 default true, uint32 pad_l = 16 default 0, uint32 pad_r = 17 default 0,
        uint32 pad_t = 18 default 0, uint32 pad_b = 19 default 0, uint32 spatial_batching_h = 20 default 0,
        uint32 spatial_batching_w = 21 default 0, uint32 batch_h = 22 default 0, uint32 batch_w = 23 default 0,
        uint32 skip_h = 24 default 0, uint32 skip_w = 25 default 0, double input_scale = 30 default 1,
        double output_scale = 31 default 1, int32 input_zero_point = 35 default 0,
        int32 output_zero_point = 36 default 0, SaturateMethod saturate = 26 default None
    """,
    "V1LayerParameter": """
        repeated string bottom = 2, repeated string top = 3, string name = 4, repeated NetStateRule include = 32,
        repeated NetStateRule exclude = 33, LayerType type = 5, repeated BlobProto blobs = 6,
        repeated string param = 1001, repeated DimCheckMode blob_share_mode = 1002, repeated float blobs_lr = 7,
        repeated float weight_decay = 8, repeated float loss_weight = 35, ConcatParameter concat_param = 9,
        ConvolutionParameter convolution_param = 10, DropoutParameter dropout_param = 12,
        EltwiseParameter eltwise_param = 24, InnerProductParameter inner_product_param = 17,
        PoolingParameter pooling_param = 19, PowerParameter power_param = 21, ReLUParameter relu_param = 30,
        SigmoidParameter sigmoid_param = 38, SoftmaxParameter softmax_param = 39
    """,
}

_ENUMS = {
    "Phase": "TRAIN = 0, TEST = 1",
    "FillerParameter.VarianceNorm": "FAN_IN = 0, FAN_OUT = 1, AVERAGE = 2",
    "DimCheckMode": "STRICT = 0, PERMISSIVE = 1",
    "SaturateMethod": "None = 0, Signed = 1, Unsigned = 2, Signed_8bit = 3, Unsigned_8bit = 4",
    "QuantizeMethod": "tflite = 0, ONNX = 1, Caffe2 = 2",
    "Engine": "DEFAULT = 0, CAFFE = 1, CUDNN = 2",
    "EltwiseParameter.EltwiseOp": "PROD = 0, SUM = 1, MAX = 2, DIV = 3, MIN = 4",
    "PoolingParameter.PoolMethod": "MAX = 0, AVE = 1, STOCHASTIC = 2, AVE_EXC_PAD = 3, AVE_TF = 3",
    "PoolingParameter.RoundMode": "CEIL = 0, FLOOR = 1",
    "SpatialBatchingPoolingParameter.PoolMethod": "MAX = 0, AVE = 1, STOCHASTIC = 2",
    "V1LayerParameter.LayerType": """
        NONE = 0, ABSVAL = 35, ACCURACY = 1, ARGMAX = 30, BNLL = 2, CONCAT = 3, CONTRASTIVE_LOSS = 37, CONVOLUTION = 4,
        DATA = 5, DECONVOLUTION = 39, DROPOUT = 6, DUMMY_DATA = 32, EUCLIDEAN_LOSS = 7, ELTWISE = 25, EXP = 38,
        FLATTEN = 8, HDF5_DATA = 9, HDF5_OUTPUT = 10, HINGE_LOSS = 28, IM2COL = 11, IMAGE_DATA = 12,
        INFOGAIN_LOSS = 13, INNER_PRODUCT = 14, LRN = 15, MEMORY_DATA = 29, MULTINOMIAL_LOGISTIC_LOSS = 16, MVN = 34,
        POOLING = 17, POWER = 26, RELU = 18, SIGMOID = 19, SIGMOID_CROSS_ENTROPY_LOSS = 27, SILENCE = 36, SOFTMAX = 20,
        SOFTMAX_LOSS = 21, SPLIT = 22, SLICE = 33, TANH = 23, WINDOW_DATA = 24, THRESHOLD = 31
    """,
}


@cache
def messages() -> Any:
    """Message classes by name."""
    return message_classes("caffe", _MESSAGES, _ENUMS)
