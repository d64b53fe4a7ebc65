/* The kernels of kernels.c behind bittrue's function table. */
#include <bittrue_device.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

#define MOST_AXES 8
#define MOST_INPUTS 3
/* The operator versions that this driver knows. */
#define ADD_VERSIONS 5
#define FULLY_CONNECTED_VERSIONS 13

typedef struct {
  const bittrue_tensor *in[MOST_INPUTS]; /* by position; NULL for absent ones */
  const bittrue_tensor *out;
  int feed[MOST_INPUTS]; /* which of the model's inputs; -1 for constants */
  clamp range;
  int is_add;
} layer;

static int refuse(char *text, size_t size, const char *why, const char *what) {
  snprintf(text, size, why, what);
  return BITTRUE_REFUSED;
}

static const bittrue_parameter *parameter(const bittrue_model *model, const char *name, int32_t kind) {
  for (size_t i = 0; i < model->parameter_count; i++)
    if (!strcmp(model->parameters[i].name, name) && model->parameters[i].kind == kind) return &model->parameters[i];
  return NULL;
}

static const char *activation_of(const bittrue_model *model) {
  const bittrue_parameter *found = parameter(model, "attribute.activation", BITTRUE_TEXT);
  return found ? found->text : "none";
}

static int is_activation(const char *word) {
  return !strcmp(word, "none") || !strcmp(word, "relu") || !strcmp(word, "relu6") || !strcmp(word, "relu_n1_to_1");
}

static int64_t count(const bittrue_tensor *tensor) {
  int64_t found = 1;
  for (int axis = 0; axis < tensor->rank; axis++) found *= tensor->shape[axis];
  return found;
}

/* int8 with a scale, and zero points that are int8, too. */
static int is_s8(const bittrue_tensor *tensor) {
  if (!tensor || strcmp(tensor->type, "s8") || tensor->scale_count < 1) return 0;
  for (int i = 0; i < tensor->scale_count; i++)
    if (tensor->zero_points[i] < -128 || tensor->zero_points[i] > 127) return 0;
  return 1;
}

/* What the quantization specification wants of weights and bias. */
static int is_linear(const bittrue_tensor *x, const bittrue_tensor *w, const bittrue_tensor *bias) {
  for (int i = 0; i < w->scale_count; i++)
    if (w->zero_points[i]) return 0;
  if (bias && bias->scale_count != w->scale_count) return 0;
  for (int i = 0; bias && i < bias->scale_count; i++) {
    double wanted = x->scales[0] * w->scales[i];
    if (bias->zero_points[i] || fabs(bias->scales[i] - wanted) > 1e-5 * wanted) return 0;
  }
  return 1;
}

static int check_add(const layer *found, char *text, size_t size) {
  const bittrue_tensor *a = found->in[0], *b = found->in[1], *y = found->out;
  if (a->rank > MOST_AXES || b->rank > MOST_AXES || y->rank > MOST_AXES)
    return refuse(text, size, "%s of more than 8 axes", "ADD");
  if (a->scale_count != 1 || b->scale_count != 1) return refuse(text, size, "%s with a scale per slice", "ADD");
  for (int i = 0; i < 2; i++) {
    const bittrue_tensor *x = found->in[i];
    if (x->rank > y->rank) return refuse(text, size, "%s: the shapes do not fit", "ADD");
    for (int axis = 0; axis < x->rank; axis++)
      if (x->shape[axis] != 1 && x->shape[axis] != y->shape[y->rank - x->rank + axis])
        return refuse(text, size, "%s: the shapes do not fit", "ADD");
  }
  return BITTRUE_OK;
}

static int check_fully_connected(const layer *found, char *text, size_t size) {
  const bittrue_tensor *x = found->in[0], *w = found->in[1], *bias = found->in[2];
  if (w->rank != 2 || !w->data) return refuse(text, size, "%s: weights that are no constant matrix", "FULLY_CONNECTED");
  int64_t units = w->shape[0], depth = w->shape[1];
  if (x->scale_count != 1) return refuse(text, size, "%s: input with a scale per slice", "FULLY_CONNECTED");
  if (!is_linear(x, w, bias))
    return refuse(text, size, "%s: zero points or scales of weights or bias", "FULLY_CONNECTED");
  if (w->scale_count != 1 && (w->axis != 0 || w->scale_count != units))
    return refuse(text, size, "%s: scales along another axis", "FULLY_CONNECTED");
  if (!depth || count(x) % depth || count(found->out) != count(x) / depth * units)
    return refuse(text, size, "%s: the shapes do not fit", "FULLY_CONNECTED");
  if (bias && (strcmp(bias->type, "s32") || count(bias) != units || !bias->data))
    return refuse(text, size, "%s: the bias is no constant s32 per unit", "FULLY_CONNECTED");
  return BITTRUE_OK;
}

static int load(const bittrue_model *model, void **state, char *text, size_t size) {
  layer found = {{0}, 0, {-1, -1, -1}, {-128, 127}, !strcmp(model->operator_name, "ADD")};
  int feeds = 0;
  if (!found.is_add && strcmp(model->operator_name, "FULLY_CONNECTED"))
    return refuse(text, size, "no kernel for %s", model->operator_name);
  const bittrue_parameter *version = parameter(model, "version", BITTRUE_INTEGERS);
  if (!version || version->integers[0] > (found.is_add ? ADD_VERSIONS : FULLY_CONNECTED_VERSIONS))
    return refuse(text, size, "%s of another version", model->operator_name);
  if (!is_activation(activation_of(model))) return refuse(text, size, "activation %s", activation_of(model));
  for (size_t i = 0; i < model->tensor_count; i++) {
    const bittrue_tensor *tensor = &model->tensors[i];
    int feed = tensor->role == BITTRUE_INPUT ? feeds++ : -1;
    if (tensor->role == BITTRUE_OUTPUT) {
      found.out = tensor;
    } else if (tensor->position >= (found.is_add ? 2 : MOST_INPUTS)) {
      return refuse(text, size, "%s with another input", model->operator_name);
    } else if (tensor->position >= 0) {
      found.in[tensor->position] = tensor;
      found.feed[tensor->position] = feed;
    }
  }
  if (!is_s8(found.in[0]) || !is_s8(found.in[1]) || !is_s8(found.out))
    return refuse(text, size, "%s of anything but int8 with scales and int8 zero points", model->operator_name);
  if (found.out->scale_count != 1) return refuse(text, size, "%s: output with a scale per slice", model->operator_name);
  int status = found.is_add ? check_add(&found, text, size) : check_fully_connected(&found, text, size);
  if (status) return status;
  found.range = activation_range(activation_of(model), found.out->scales[0], (int32_t)found.out->zero_points[0]);
  layer *kept = malloc(sizeof *kept);
  if (!kept) {
    snprintf(text, size, "out of memory");
    return BITTRUE_ERROR;
  }
  *kept = found;
  *state = kept;
  return BITTRUE_OK;
}

static const int8_t *values(const layer *of, int position, const bittrue_input *inputs) {
  return of->feed[position] < 0 ? of->in[position]->data : inputs[of->feed[position]].data;
}

static operand operand_of(const bittrue_tensor *tensor) {
  operand found = {tensor->scales[0], (int32_t)tensor->zero_points[0]};
  return found;
}

/* Where element `flat` of y comes from in a tensor that is stretched to y's shape. */
static int64_t place(const bittrue_tensor *x, const bittrue_tensor *y, int64_t flat) {
  int64_t found = 0, stride = 1;
  for (int axis = y->rank - 1; axis >= 0; axis--) {
    int64_t index = flat % y->shape[axis];
    int own = axis - (y->rank - x->rank);
    flat /= y->shape[axis];
    if (own >= 0) {
      if (x->shape[own] > 1) found += index * stride;
      stride *= x->shape[own];
    }
  }
  return found;
}

static int run(void *state, const bittrue_input *inputs, size_t input_count, const bittrue_output *outputs,
               size_t output_count, char *text, size_t size) {
  const layer *of = state;
  const bittrue_tensor *x = of->in[0], *w = of->in[1], *bias = of->in[2], *y = of->out;
  int8_t *to = outputs[0].data;
  (void)input_count, (void)output_count;
  if (of->is_add) {
    operand a = operand_of(x), b = operand_of(w), c = operand_of(y);
    addition with = prepare_addition(&a, &b, &c, of->range);
    const int8_t *first = values(of, 0, inputs), *second = values(of, 1, inputs);
    if (with.first_exponent > 0 || with.second_exponent > 0 || with.output_exponent > 0)
      return refuse(text, size, "%s that makes sums larger", "ADD");
    for (int64_t i = 0; i < count(y); i++) to[i] = add(&with, first[place(x, y, i)], second[place(w, y, i)]);
    return BITTRUE_OK;
  }
  int64_t units = w->shape[0], depth = w->shape[1];
  double *factors = malloc(sizeof *factors * (size_t)w->scale_count);
  if (!factors) {
    snprintf(text, size, "out of memory");
    return BITTRUE_ERROR;
  }
  for (int i = 0; i < w->scale_count; i++) factors[i] = x->scales[0] * w->scales[i] / y->scales[0];
  fully_connected(values(of, 0, inputs), w->data, bias ? bias->data : NULL, to, count(x) / depth, depth, units,
                  (int32_t)x->zero_points[0], (int32_t)w->zero_points[0], (int32_t)y->zero_points[0], factors,
                  w->scale_count, of->range);
  free(factors);
  return BITTRUE_OK;
}

static const bittrue_device table = {
    BITTRUE_DEVICE_ABI, sizeof(bittrue_device), "two int8 kernels in C, 1.0", "tflite", load, run, free,
};

const bittrue_device *bittrue_device_table(void) { return &table; }
