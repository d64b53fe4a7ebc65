/*
 * bittrue_device.h: a device under test as a C shared library.
 *
 * A library exports one function, bittrue_device_table(), that returns a table of four functions. bittrue loads the
 * library in a process of its own, shows it one model of one operator at a time, and compares the bytes that it writes:
 *
 *     const bittrue_device *bittrue_device_table(void);
 *
 *     load(model, &state, text, text_size)   once per case; the model stays where it is until unload
 *     run(state, inputs, outputs, ...)       once per load
 *     unload(state)                          after every load that returned BITTRUE_OK
 *
 * Functions return one of the status codes below. With BITTRUE_REFUSED and BITTRUE_ERROR they write a sentence for people
 * into `text` (text_size bytes, ending with 0). A crash, an exit and a loop without end are noticed and reported; the next
 * case runs in a new process.
 *
 * All numbers are in the byte order of the machine. Arrays are in C order; types of less than 8 bits take a byte per
 * element. Nothing that bittrue hands over may be written to or freed, but the bytes of `bittrue_output.data`.
 *
 *     bittrue conform library:./libdevice.so
 */
#ifndef BITTRUE_DEVICE_H
#define BITTRUE_DEVICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BITTRUE_DEVICE_ABI 1

/* Status codes. */
#define BITTRUE_OK 0
#define BITTRUE_REFUSED 1 /* the device does not run such a model: no fault */
#define BITTRUE_ERROR 2   /* something went wrong: a fault */

/* What a tensor is to the model. */
#define BITTRUE_INPUT 0
#define BITTRUE_CONSTANT 1
#define BITTRUE_OUTPUT 2
#define BITTRUE_INNER 3

/* What the values of a parameter are. */
#define BITTRUE_INTEGERS 0
#define BITTRUE_REALS 1
#define BITTRUE_TEXT 2

typedef struct {
  const char *name;  /* in the model file */
  int32_t role;      /* BITTRUE_INPUT ... */
  int32_t position;  /* among the inputs of the operator, or among its outputs; -1 when it is of another operator */
  const char *type;  /* "s8", "u8", "s16", "s32", "s64", "f32", "bool", ... */
  int32_t rank;
  int32_t axis;      /* of the scales; -1 when there is one for the whole tensor */
  const int64_t *shape;
  int32_t scale_count; /* 0: the tensor is not quantized; else real = scale * (value - zero_point) */
  int32_t reserved;
  const double *scales;      /* each is a binary32 number */
  const int64_t *zero_points; /* as many */
  const void *data;  /* values of a constant; NULL for others */
  size_t bytes;      /* of all values */
} bittrue_tensor;

/*
 * A number, list of numbers or word about the model.
 *
 * "version": of the operator, as the model file says. "attribute.NAME": of the operator, in bittrue's words:
 * "attribute.strides", "attribute.activation"; no and yes are 0 and 1. "step0.NAME": what LiteRT's reference kernels
 * (for .onnx models ONNX Runtime) would compute it with: "step0.multiplier" and "step0.exponent" (real factor =
 * multiplier * 2^(exponent - 31)), "step0.low" and "step0.high" (the clamp), "step0.rule.rescale" (the name of the
 * arithmetic). `bittrue plan MODEL` prints the same. A device is free to derive its own.
 */
typedef struct {
  const char *name;
  int32_t kind; /* BITTRUE_INTEGERS ... */
  int32_t reserved;
  size_t count;            /* of numbers; of bytes without the ending 0 for texts */
  const int64_t *integers; /* NULL unless kind says so, like the next two */
  const double *reals;
  const char *text;
} bittrue_parameter;

typedef struct {
  const char *identity;      /* of the case: "ADD/s8/ties/000" */
  const char *operator_name; /* as model files call it: "ADD", "QLinearConv" */
  const char *types;         /* "s8" */
  const char *format;        /* of `content`: "tflite" or "onnx" */
  const void *content;       /* the model file */
  size_t content_bytes;
  size_t tensor_count;       /* inputs in the model's order, then constants, inner tensors, outputs in the model's order */
  const bittrue_tensor *tensors;
  size_t parameter_count;
  const bittrue_parameter *parameters;
  const char *description;   /* all of this as JSON, without the values of constants */
} bittrue_model;

typedef struct {
  const void *data;
  size_t bytes;
} bittrue_input;

typedef struct {
  void *data;   /* holds arbitrary bytes before the run; room for `bytes` */
  size_t bytes; /* of the tensor's type and shape as the model declares them */
} bittrue_output;

typedef struct {
  uint32_t abi;      /* BITTRUE_DEVICE_ABI */
  uint32_t size;     /* sizeof(bittrue_device) */
  const char *title; /* for people, with version */
  const char *reads; /* model formats, separated by commas: "tflite", "tflite,onnx" */
  int (*load)(const bittrue_model *model, void **state, char *text, size_t text_size);
  int (*run)(void *state, const bittrue_input *inputs, size_t input_count, const bittrue_output *outputs,
             size_t output_count, char *text, size_t text_size);
  void (*unload)(void *state);
} bittrue_device;

/* The only symbol that a library must export. */
const bittrue_device *bittrue_device_table(void);

#ifdef __cplusplus
}
#endif

#endif
