"""The TFLite schema as data: tables, enumerations, unions, and how operators are called in bittrue.

Facts from LiteRT's ``tflite/converter/schema/schema.fbs`` at f674577 (version 3d), read, and from the classes generated
for ai-edge-litert 2.3.0, which has two fields more (``quant_spec``, ``block_shape``); tests compare with the latter.
A field's slot and an enumerator's number are its position in the row. Rows may continue on indented lines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ..graph import Attribute
from ..records import dataclass
from .flatbuffer import Field, parse_fields

# name, underlying type, enumerators from 0 on.
_ENUM_ROWS = """
TensorType byte FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128 UINT64 RESOURCE
    VARIANT UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4 FLOAT8_E4M3FN FLOAT8_E5M2
DimensionType byte DENSE SPARSE_CSR
BuiltinOperator int ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION
    LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX
    SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
    UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE
    UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE
    BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL
    SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN
    FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE
    MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG
    QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
    SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D
    CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE
    RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
    UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC
    STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
    STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL
    STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
    STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
    STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
    STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
    STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
    STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT STABLEHLO_CASE
StablehloPrecisionConfig uint DEFAULT HIGH HIGHEST
StablehloComparisonDirection uint EQ NE GE GT LE LT
StablehloComparisonType uint NOTYPE FLOAT FLOAT_TOTAL_ORDER SIGNED UNSIGNED
RngAlgorithm byte DEFAULT PHILOX THREEFRY
Padding byte SAME VALID
ActivationFunctionType byte NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT
LSHProjectionType byte UNKNOWN SPARSE DENSE
FullyConnectedOptionsWeightsFormat byte DEFAULT SHUFFLED4x16INT8
LSTMKernelType byte FULL BASIC
CombinerType byte SUM MEAN SQRTN
MirrorPadMode byte REFLECT SYMMETRIC
ReduceWindowFunction int UNSUPPORTED ADD MUL MINIMUM MAXIMUM ALL ANY
CustomOptionsFormat byte FLEXBUFFERS
"""

# bittrue's name of each TensorType.
_TYPE_NAMES = """
f32 f16 s32 u8 s64 string bool s16 c64 s8 f64 c128 u64 resource variant u32 u16 s4 bf16 s2 u4 f8e4m3fn f8e5m2
"""

# name, member tables from 1 on.
_UNION_ROWS = """
QuantizationDetails CustomQuantization BlockwiseQuantization MultiAxisQuantization
SparseIndexVector Int32Vector Uint16Vector Uint8Vector
BuiltinOptions Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions Pool2DOptions
    SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions ConcatenationOptions AddOptions L2NormOptions
    LocalResponseNormalizationOptions LSTMOptions ResizeBilinearOptions CallOptions ReshapeOptions SkipGramOptions
    SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions PadOptions GatherOptions BatchToSpaceNDOptions
    SpaceToBatchNDOptions TransposeOptions ReducerOptions SubOptions DivOptions SqueezeOptions SequenceRNNOptions
    StridedSliceOptions ExpOptions TopKV2Options SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions
    MaximumMinimumOptions ArgMaxOptions LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions
    LessEqualOptions SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions TileOptions
    ExpandDimsOptions EqualOptions NotEqualOptions ShapeOptions PowOptions ArgMinOptions FakeQuantOptions PackOptions
    LogicalOrOptions OneHotOptions LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions SquareOptions
    ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions BidirectionalSequenceRNNOptions
    UnidirectionalSequenceLSTMOptions FloorModOptions RangeOptions ResizeNearestNeighborOptions LeakyReluOptions
    SquaredDifferenceOptions MirrorPadOptions AbsOptions SplitVOptions UniqueOptions ReverseV2Options AddNOptions
    GatherNdOptions CosOptions WhereOptions RankOptions ReverseSequenceOptions MatrixDiagOptions QuantizeOptions
    MatrixSetDiagOptions HardSwishOptions IfOptions WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options
    NonMaxSuppressionV5Options ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions BatchMatMulOptions
    CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions HashtableOptions HashtableFindOptions
    HashtableImportOptions HashtableSizeOptions VarHandleOptions ReadVariableOptions AssignVariableOptions
    RandomOptions BucketizeOptions GeluOptions DynamicUpdateSliceOptions UnsortedSegmentProdOptions
    UnsortedSegmentMaxOptions UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions
    BitcastOptions BitwiseXorOptions RightShiftOptions
BuiltinOptions2 StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions
    StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions StablehloScatterOptions
    StablehloCompareOptions StablehloDynamicSliceOptions StablehloPadOptions StablehloIotaOptions
    StablehloDotGeneralOptions StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions
    StablehloGatherOptions StablehloTransposeOptions DilateOptions StablehloRngBitGeneratorOptions ReduceWindowOptions
    StableHLOCompositeOptions StablehloShiftLeftOptions StablehloCaseOptions
"""

# name, fields as name:type=default; [type] is a vector, a leading - marks a deprecated field, ! a refused one.
_TABLE_ROWS = """
Model version:uint operator_codes:[OperatorCode] subgraphs:[SubGraph] description:string buffers:[Buffer]
    metadata_buffer:[int] metadata:[Metadata] signature_defs:[SignatureDef]
    external_buffer_groups:[ExternalBufferGroup] external_buffers:[ExternalBuffer]
OperatorCode deprecated_builtin_code:byte custom_code:string version:int=1 builtin_code:BuiltinOperator
SubGraph tensors:[Tensor] inputs:[int] outputs:[int] operators:[Operator] name:string debug_metadata_index:int=-1
Tensor shape:[int] type:TensorType buffer:uint name:string quantization:QuantizationParameters is_variable:bool
    sparsity:SparsityParameters shape_signature:[int] has_rank:bool variant_tensors:[VariantSubType]
    external_buffer:uint
QuantizationParameters min:[float] max:[float] scale:[float] zero_point:[long] details:QuantizationDetails
    quantized_dimension:int
Operator opcode_index:uint inputs:[int] outputs:[int] builtin_options:BuiltinOptions custom_options:[ubyte]
    custom_options_format:CustomOptionsFormat mutating_variable_inputs:[bool] intermediates:[int]
    large_custom_options_offset:ulong large_custom_options_size:ulong builtin_options_2:BuiltinOptions2
    debug_metadata_index:int=-1
Buffer data:[ubyte] offset:ulong size:ulong
Metadata name:string buffer:uint
SignatureDef inputs:[TensorMap] outputs:[TensorMap] signature_key:string -deprecated_tag:string subgraph_index:uint
TensorMap name:string tensor_index:uint
CustomQuantization custom:[ubyte]
BlockwiseQuantization scales:int zero_points:int block_size:int block_shape:[int]
MultiAxisQuantization scales:int zero_points:int block_size:int quantized_dimensions:[int]
Int32Vector values:[int]
Uint16Vector values:[ushort]
Uint8Vector values:[ubyte]
DimensionMetadata format:DimensionType dense_size:int array_segments:SparseIndexVector array_indices:SparseIndexVector
SparsityParameters traversal_order:[int] block_map:[int] dim_metadata:[DimensionMetadata]
VariantSubType shape:[int] type:TensorType has_rank:bool
StablehloGatherOptions offset_dims:[long] collapsed_slice_dims:[long] start_index_map:[long] index_vector_dim:long
    slice_sizes:[long] indices_are_sorted:bool
StablehloTransposeOptions permutation:[long]
StablehloDotGeneralOptions lhs_batching_dimensions:[long] rhs_batching_dimensions:[long]
    lhs_contracting_dimensions:[long] rhs_contracting_dimensions:[long] precision_config:[StablehloPrecisionConfig]
StablehloReduceWindowOptions window_dimensions:[long] window_strides:[long] base_dilations:[long]
    window_dilations:[long] padding:[long] body_subgraph_index:int
StablehloWhileOptions cond_subgraph_index:int body_subgraph_index:int
StablehloSortOptions dimension:long is_stable:bool comparator_subgraph_index:int
StablehloConcatenateOptions dimension:long
StablehloBroadcastInDimOptions broadcast_dimensions:[long]
StablehloCompareOptions comparison_direction:StablehloComparisonDirection compare_type:StablehloComparisonType
StablehloDynamicSliceOptions slice_sizes:[long]
StablehloPadOptions edge_padding_low:[long] edge_padding_high:[long] interior_padding:[long]
StablehloIotaOptions iota_dimension:long
StablehloCustomCallOptions call_target_name:string has_side_effect:bool backend_config:string api_version:int
    called_computations:[int] custom_attributes:[ubyte]
StablehloReduceOptions dimensions:[long] body_subgraph_index:int
StablehloSliceOptions start_indices:[long] limit_indices:[long] strides:[long]
StablehloConvolutionOptions window_strides:[long] padding:[long] lhs_dilation:[long] rhs_dilation:[long]
    window_reversal:[bool] input_batch_dimension:long input_feature_dimension:long input_spatial_dimensions:[long]
    kernel_input_feature_dimension:long kernel_output_feature_dimension:long kernel_spatial_dimensions:[long]
    output_batch_dimension:long output_feature_dimension:long output_spatial_dimensions:[long]
    feature_group_count:long batch_group_count:long precision_config:[StablehloPrecisionConfig]
StablehloScatterOptions indices_are_sorted:bool update_window_dims:[long] inserted_window_dims:[long]
    scatter_dims_to_operand_dims:[long] index_vector_dim:long unique_indices:bool
    update_computation_subgraph_index:int
StablehloCaseOptions branch_subgraph_indices:[int]
StablehloRngBitGeneratorOptions algorithm:RngAlgorithm
Conv2DOptions padding:Padding stride_w:int stride_h:int fused_activation_function:ActivationFunctionType
    dilation_w_factor:int=1 dilation_h_factor:int=1 quantized_bias_type:TensorType
Conv3DOptions padding:Padding stride_d:int stride_w:int stride_h:int fused_activation_function:ActivationFunctionType
    dilation_d_factor:int=1 dilation_w_factor:int=1 dilation_h_factor:int=1
Pool2DOptions padding:Padding stride_w:int stride_h:int filter_width:int filter_height:int
    fused_activation_function:ActivationFunctionType
DepthwiseConv2DOptions padding:Padding stride_w:int stride_h:int depth_multiplier:int
    fused_activation_function:ActivationFunctionType dilation_w_factor:int=1 dilation_h_factor:int=1
ConcatEmbeddingsOptions num_channels:int num_columns_per_channel:[int] embedding_dim_per_channel:[int]
LSHProjectionOptions type:LSHProjectionType
SVDFOptions rank:int fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool
RNNOptions fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool
SequenceRNNOptions time_major:bool fused_activation_function:ActivationFunctionType asymmetric_quantize_inputs:bool
BidirectionalSequenceRNNOptions time_major:bool fused_activation_function:ActivationFunctionType merge_outputs:bool
    asymmetric_quantize_inputs:bool
FullyConnectedOptions fused_activation_function:ActivationFunctionType
    weights_format:FullyConnectedOptionsWeightsFormat keep_num_dims:bool asymmetric_quantize_inputs:bool
    quantized_bias_type:TensorType !quant_spec:[ubyte]
SoftmaxOptions beta:float
ConcatenationOptions axis:int fused_activation_function:ActivationFunctionType
AddOptions fused_activation_function:ActivationFunctionType pot_scale_int16:bool=true
MulOptions fused_activation_function:ActivationFunctionType
L2NormOptions fused_activation_function:ActivationFunctionType
LocalResponseNormalizationOptions radius:int bias:float alpha:float beta:float
LSTMOptions fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float
    kernel_type:LSTMKernelType asymmetric_quantize_inputs:bool
UnidirectionalSequenceLSTMOptions fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float
    time_major:bool asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool
BidirectionalSequenceLSTMOptions fused_activation_function:ActivationFunctionType cell_clip:float proj_clip:float
    merge_outputs:bool time_major:bool=true asymmetric_quantize_inputs:bool
ResizeBilinearOptions -new_height:int -new_width:int align_corners:bool half_pixel_centers:bool
ResizeNearestNeighborOptions align_corners:bool half_pixel_centers:bool
CallOptions subgraph:uint
ReshapeOptions new_shape:[int]
SkipGramOptions ngram_size:int max_skip_size:int include_all_ngrams:bool
SpaceToDepthOptions block_size:int
DepthToSpaceOptions block_size:int
SubOptions fused_activation_function:ActivationFunctionType pot_scale_int16:bool=true
DivOptions fused_activation_function:ActivationFunctionType
EmbeddingLookupSparseOptions combiner:CombinerType
GatherOptions axis:int batch_dims:int
ReducerOptions keep_dims:bool
SqueezeOptions squeeze_dims:[int]
SplitOptions num_splits:int
SplitVOptions num_splits:int
StridedSliceOptions begin_mask:int end_mask:int ellipsis_mask:int new_axis_mask:int shrink_axis_mask:int offset:bool
CastOptions in_data_type:TensorType out_data_type:TensorType
ArgMaxOptions output_type:TensorType
ArgMinOptions output_type:TensorType
TransposeConvOptions padding:Padding stride_w:int stride_h:int fused_activation_function:ActivationFunctionType
    quantized_bias_type:TensorType
SparseToDenseOptions validate_indices:bool
ShapeOptions out_type:TensorType
FakeQuantOptions min:float max:float num_bits:int narrow_range:bool
PackOptions values_count:int axis:int
OneHotOptions axis:int
UnpackOptions num:int axis:int
LeakyReluOptions alpha:float
MirrorPadOptions mode:MirrorPadMode
UniqueOptions idx_out_type:TensorType=2
ReverseSequenceOptions seq_dim:int batch_dim:int
IfOptions then_subgraph_index:int else_subgraph_index:int
CallOnceOptions init_subgraph_index:int
WhileOptions cond_subgraph_index:int body_subgraph_index:int
BatchMatMulOptions adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool
CumsumOptions exclusive:bool reverse:bool
HashtableOptions table_id:int key_dtype:TensorType value_dtype:TensorType
VarHandleOptions container:string shared_name:string
RandomOptions seed:long seed2:long
BucketizeOptions boundaries:[float]
GeluOptions approximate:bool
ReduceWindowOptions reduce_function:ReduceWindowFunction
StableHLOCompositeOptions name:string decomposition_subgraph_index:int composite_attributes:[ubyte]
    composite_attributes_format:CustomOptionsFormat version:int
ExternalBufferGroup name:string
ExternalBuffer id:uint group:uint offset:ulong length:ulong packing:string
"""

# Tables that exist and have no field.
_EMPTY_TABLES = """
    PadOptions PadV2Options SpaceToBatchNDOptions BatchToSpaceNDOptions TopKV2Options TransposeOptions ExpOptions
    CosOptions LogSoftmaxOptions DequantizeOptions MaximumMinimumOptions TileOptions GreaterOptions
    GreaterEqualOptions LessOptions LessEqualOptions NegOptions SelectOptions SliceOptions ExpandDimsOptions
    EqualOptions NotEqualOptions RankOptions PowOptions LogicalOrOptions AbsOptions HardSwishOptions LogicalAndOptions
    LogicalNotOptions FloorDivOptions SquareOptions ZerosLikeOptions FillOptions FloorModOptions RangeOptions
    SquaredDifferenceOptions ReverseV2Options AddNOptions GatherNdOptions WhereOptions MatrixDiagOptions
    QuantizeOptions MatrixSetDiagOptions NonMaxSuppressionV4Options NonMaxSuppressionV5Options ScatterNdOptions
    SelectV2Options DensifyOptions SegmentSumOptions BroadcastToOptions Rfft2dOptions HashtableFindOptions
    HashtableImportOptions HashtableSizeOptions ReadVariableOptions AssignVariableOptions DynamicUpdateSliceOptions
    UnsortedSegmentProdOptions UnsortedSegmentMaxOptions UnsortedSegmentSumOptions ATan2Options
    UnsortedSegmentMinOptions SignOptions BitcastOptions BitwiseXorOptions RightShiftOptions DilateOptions
    StablehloShiftLeftOptions
"""


def _rows(text: str) -> dict[str, list[str]]:
    """First word of each row -> the other words, continuation lines joined."""
    rows = (row.split() for row in text.replace("\n    ", " ").strip().splitlines())
    return {row[0]: row[1:] for row in rows}


_ENUMS = _rows(_ENUM_ROWS)
_TABLES = {**_rows(_TABLE_ROWS), **{name: [] for name in _EMPTY_TABLES.split()}}

ENUMS: dict[str, tuple[str, ...]] = {name: tuple(row[1:]) for name, row in _ENUMS.items()}
"""Enumeration -> enumerators by number."""

UNIONS: dict[str, tuple[str, ...]] = {name: ("NONE", *row) for name, row in _rows(_UNION_ROWS).items()}
"""Union -> member tables by number; 0 is none."""

TABLES: tuple[str, ...] = tuple(_TABLES)
"""Names of all tables."""

TYPES: tuple[str, ...] = tuple(_TYPE_NAMES.split())
"""TensorType by number under bittrue's names."""

# Schema field name -> attribute name, in every options table.
RENAMES: dict[str, str] = {
    "adj_x": "transpose_a",
    "adj_y": "transpose_b",
    "fused_activation_function": "activation",
    "quantized_bias_type": "bias_type",
    "then_subgraph_index": "then_graph",
    "else_subgraph_index": "else_graph",
    "cond_subgraph_index": "condition_graph",
    "body_subgraph_index": "body_graph",
    "filter_height": "filter_h",
    "filter_width": "filter_w",
    "dilation_d_factor": "dilation_d",
    "dilation_h_factor": "dilation_h",
    "dilation_w_factor": "dilation_w",
    "num": "count",
    "num_splits": "count",
}

# Builtin name -> stem, where the stem is not the name in lower case.
STEMS: dict[str, str] = {
    "BATCH_MATMUL": "matmul",
    **{
        f"{way}_SEQUENCE_{cell}": cell.lower()
        for way in ("UNIDIRECTIONAL", "BIDIRECTIONAL")
        for cell in ("LSTM", "RNN")
    },
    "CONV_2D": "conv",
    "CONV_3D": "conv",
    "CONV_3D_TRANSPOSE": "conv_transpose",
    "DEPTHWISE_CONV_2D": "conv",
    "AVERAGE_POOL_2D": "average_pool",
    "COMPLEX_ABS": "abs",
    "LOGICAL_AND": "bitwise_and",
    "LOGICAL_NOT": "bitwise_not",
    "LOGICAL_OR": "bitwise_or",
    "MAX_POOL_2D": "max_pool",
    "L2_POOL_2D": "lp_pool",
    "DENSIFY": "identity",
    "DILATE": "pad",
    "EMBEDDING_LOOKUP": "gather",
    "WHILE": "loop",
    "MATRIX_DIAG": "matrix_set_diag",
    "MIRROR_PAD": "pad",
    "RANK": "shape",
    "PADV2": "pad",
    "BATCH_TO_SPACE_ND": "batch_to_space",
    "SPACE_TO_BATCH_ND": "space_to_batch",
    "POW": "power",
    "RELU6": "relu",
    "RELU_0_TO_1": "relu",
    "RELU_N1_TO_1": "relu",
    "RESIZE_BILINEAR": "resize_linear",
    "RESIZE_NEAREST_NEIGHBOR": "resize_nearest",
    "NON_MAX_SUPPRESSION_V4": "non_max_suppression",
    "NON_MAX_SUPPRESSION_V5": "non_max_suppression",
    "RIGHT_SHIFT": "shift",
    "REAL": "complex_part",
    "IMAG": "complex_part",
    "REDUCE_ANY": "reduce_max",
    "REDUCE_ALL": "reduce_min",
    "SELECT_V2": "select",
    "SQUARE": "mul",
    "ZEROS_LIKE": "fill",
    "L2_NORMALIZATION": "lp_normalization",
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND"), "round_to_integer"),
    "FLOOR_DIV": "div",
    "FLOOR_MOD": "remainder",
    "SPARSE_TO_DENSE": "scatter_nd",
    "SPLIT_V": "split",
    "STABLEHLO_ADD": "add",
    "STABLEHLO_MAXIMUM": "maximum",
    "STABLEHLO_MINIMUM": "minimum",
    "STABLEHLO_MULTIPLY": "mul",
    "STABLEHLO_GATHER": "gather_nd",
    "STABLEHLO_PAD": "pad",
    "STABLEHLO_REDUCE_WINDOW": "reduce_window",
    "TRANSPOSE_CONV": "conv_transpose",
    "UNPACK": "split",
    "UNSORTED_SEGMENT_MAX": "unsorted_segment",
    "UNSORTED_SEGMENT_MIN": "unsorted_segment",
    "UNSORTED_SEGMENT_PROD": "unsorted_segment",
    "UNSORTED_SEGMENT_SUM": "unsorted_segment",
}

# Builtin name -> attributes that tell it from another one of the same stem.
ATTRIBUTES: dict[str, dict[str, Attribute]] = {
    "BATCH_MATMUL": {"most_axes": 5},
    **{
        f"{way}{cell}": {"operands": "separate", "sequence": sequence, "bidirectional": both}
        for cell in ("LSTM", "RNN")
        for way, sequence, both in (
            ("", False, False),
            ("UNIDIRECTIONAL_SEQUENCE_", True, False),
            ("BIDIRECTIONAL_SEQUENCE_", True, True),
        )
    },
    "CONV_2D": {"filter_layout": "OSI"},
    "CONV_3D": {"filter_layout": "SIO"},
    "CONV_3D_TRANSPOSE": {"filter_layout": "SOI"},
    "DEPTHWISE_CONV_2D": {"filter_layout": "ISO"},
    **{f"STABLEHLO_{name}": {"stored_values": True} for name in ("ADD", "MAXIMUM", "MINIMUM", "MULTIPLY")},
    "EMBEDDING_LOOKUP": {"axis": 0, "batch_dims": 0, "table": True},
    "IF": {"plans_both": True},
    "STABLEHLO_GATHER": {"boxes": True},
    **{name: {"mode": "gaps"} for name in ("DILATE", "STABLEHLO_PAD")},
    "MIRROR_PAD": {"widths": "pairs"},
    **{f"NON_MAX_SUPPRESSION_V{number}": {"results": "indices"} for number in (4, 5)},
    "ONE_HOT": {"from_either_end": False},
    **{name: {"mode": "constant", "widths": "pairs"} for name in ("PAD", "PADV2")},
    "RANK": {"of": "rank"},
    "SHAPE": {"of": "dimensions"},
    "L2_NORMALIZATION": {"axis": -1, "p": 2},
    **{name: {"direction": way} for name, way in (("CEIL", "up"), ("FLOOR", "down"), ("ROUND", "even"))},
    "FLOOR_DIV": {"rounding": "down"},
    "FLOOR_MOD": {"sign_of": "divisor"},
    "IMAG": {"part": "imaginary"},
    "REAL": {"part": "real"},
    "REDUCE_ALL": {"truth_values": True},
    "REDUCE_ANY": {"truth_values": True},
    "RIGHT_SHIFT": {"up": False},
    "SELECT": {"broadcasts": False},
    "SELECT_V2": {"broadcasts": True},
    "RANGE": {"counting": "wrapped_magnitude"},
    "RESHAPE": {"zeros": "counted"},
    **{name: {"activation": name.lower()} for name in ("RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1")},
    "SCATTER_ND": {"coordinates": "slices", "reduction": "add", "wraps": False},
    "SPARSE_TO_DENSE": {"coordinates": "elements", "reduction": "replace", "wraps": False},
    "SPLIT": {"keeps_axis": True, "open_size": False, "uneven": False},
    "SPLIT_V": {"keeps_axis": True, "open_size": True, "uneven": False},
    "TRANSPOSE_CONV": {"filter_layout": "OSI"},
    "SQUARE": {"activation": "none", "squares": True},
    "ZEROS_LIKE": {"like": True},
    "UNPACK": {"keeps_axis": False, "open_size": False, "uneven": False},
    "UNIQUE": {"nans_differ": False, "results": "indices", "sorted": False},
    "UNSORTED_SEGMENT_MAX": {"reduction": "largest"},
    "UNSORTED_SEGMENT_MIN": {"reduction": "smallest"},
    "UNSORTED_SEGMENT_PROD": {"reduction": "multiply"},
    "UNSORTED_SEGMENT_SUM": {"reduction": "add"},
}

# Builtin name -> the file's input of each of our operands, None for one that it cannot have; others follow.
ORDERS: dict[str, tuple[int | None, ...]] = {
    "CONV_3D_TRANSPOSE": (2, 1, 3, *(None,) * 6, 0),
    "EMBEDDING_LOOKUP": (1, 0),
    "MATRIX_DIAG": (None, 0),
    "SCATTER_ND": (None, 0, 1, 2),
    "SPARSE_TO_DENSE": (None, 0, 2, 1, 3),
    "SPLIT": (1, None, 0),
    "SQUARE": (0, 0),
    "STABLEHLO_PAD": (0, None, 1),
    "TRANSPOSE_CONV": (2, 1, 3, *(None,) * 6, 0),
}

# Builtin name -> options table, where that table is not named after the operator.
OPTIONS: dict[str, str] = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "L2_POOL_2D": "Pool2DOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "MAXIMUM": "MaximumMinimumOptions",
    "MINIMUM": "MaximumMinimumOptions",
    "MEAN": "ReducerOptions",
    "SUM": "ReducerOptions",
    "REDUCE_PROD": "ReducerOptions",
    "REDUCE_MAX": "ReducerOptions",
    "REDUCE_MIN": "ReducerOptions",
    "REDUCE_ANY": "ReducerOptions",
    "REDUCE_ALL": "ReducerOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
    "RANDOM_STANDARD_NORMAL": "RandomOptions",
    "RANDOM_UNIFORM": "RandomOptions",
    "MULTINOMIAL": "RandomOptions",
}

_OPTION_TABLES = {
    member.lower(): member for union in ("BuiltinOptions", "BuiltinOptions2") for member in UNIONS[union][1:]
}


@dataclass(frozen=True)
class Operator:
    """How one builtin operator is read.

    Attributes:
        source: the schema's name.
        stem: bittrue's name.
        options: its options table, empty when it has none.
        fields: that table's fields that become attributes, as (attribute name, field).
        refused: names of its fields that must not be set.
        attributes: attributes that say which of several operators of one stem it is.
        order: the file's input of each of our operands; those that it does not name follow.
    """

    source: str
    stem: str
    options: str
    fields: tuple[tuple[str, Field], ...]
    refused: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    order: tuple[int | None, ...]

    def operands(self, inputs: tuple[int, ...]) -> tuple[int | None, ...]:
        """Tensors of our operands from those of the file's inputs; None for absent ones."""
        ordered = (-1 if place is None or place >= len(inputs) else inputs[place] for place in self.order)
        rest = (tensor for place, tensor in enumerate(inputs) if place not in self.order)
        return tuple(None if tensor < 0 else tensor for tensor in (*ordered, *rest))


@functools.cache
def fields(table: str) -> Mapping[str, Field]:
    """The fields of a table by name."""
    return parse_fields(" ".join(_TABLES[table]), {name: row[0] for name, row in _ENUMS.items()}, UNIONS)


@functools.cache
def operator(number: int) -> Operator:
    """The builtin operator with this number, which must be in ``range(len(ENUMS["BuiltinOperator"]))``.

    >>> operator(3).stem, operator(3).options
    ('conv', 'Conv2DOptions')
    """
    source = ENUMS["BuiltinOperator"][number]
    options = OPTIONS.get(source) or _OPTION_TABLES.get(source.replace("_", "").lower() + "options", "")
    kept = [field for field in fields(options).values() if not field.deprecated] if options else []
    attributes = tuple((RENAMES.get(field.name, field.name), field) for field in kept if not field.refused)
    refused = tuple(field.name for field in kept if field.refused)
    stem, given, order = STEMS.get(source, source.lower()), ATTRIBUTES.get(source, {}), ORDERS.get(source, ())
    return Operator(source, stem, options, attributes, refused, given, order)
