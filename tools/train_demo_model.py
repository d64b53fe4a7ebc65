"""Train the digit classifier that bittrue carries as its embedded demo.

What it does
    Trains a small convolutional net on scikit-learn's ``load_digits`` (1797 grey images of 8x8
    pixels, ten classes), keeping a stratified quarter of them as a test split that neither training
    nor calibration sees.  The net is then converted by full-integer post-training quantization
    (int8 input, weights, activations and output; int32 biases; batch size fixed at 1), with the
    training split as calibration data.  At the end the written int8 model is run on the whole test
    split, and the script fails if fewer than 97 % of the images are classified correctly.

What it writes (by default to ``src/bittrue/data/demo``)
    ``digits_int8.tflite``  the int8 model: input [1, 8, 8, 1], output [1, 10] (class probabilities).
    ``digits.npz``          the first 100 images of the shuffled test split, not picked by result:
                            ``images`` uint8 [100, 8, 8, 1] with the original grey values 0..16 and
                            ``labels`` uint8 [100].

How an image becomes the model's input
    For a grey value x in 0..16 the float net sees min(x / 16, 255 / 256), so that the calibrated
    input range is exactly [0, 255/256] and the converter arrives at scale 1/256 and zero point -128.
    In general the int8 input is ``q = clamp(round(x / 16 / scale) + zero_point, -128, 127)``; with
    this scale nothing is left to round, and it is the same as ``q = min(16 * x - 128, 127)``.
    The predicted class is the index of the largest output.

How to run it (from the root of the repository)
    python -m pip install tensorflow-cpu scikit-learn
    python tools/train_demo_model.py [OUTPUT_FOLDER]

Versions it was run with
    Python 3.11, tensorflow-cpu 2.21.0 (keras 3.15.1), scikit-learn 1.9.1, numpy 2.4.6.
    The seeds are fixed and TensorFlow is asked for deterministic operators, so a repeated run on one
    machine gives the same files; other versions or another processor may give other weights.

Licence note
    The digits come from "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, UCI
    Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49), licensed under CC BY 4.0
    (https://creativecommons.org/licenses/by/4.0/); they are taken from the copy of its test set that
    scikit-learn ships.  The images are unchanged: only the selection, the order and the array type
    differ.  The net and its weights are made by this script.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tensorflow as tf
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20240501
TEST_SHARE = 0.25
STORED_DIGITS = 100
CHANNELS = 16
EPOCHS = 60
BATCH_SIZE = 32
LEARNING_RATE = 3e-3
MIN_ACCURACY = 0.97

DEFAULT_FOLDER = Path(__file__).resolve().parent.parent / "src" / "bittrue" / "data" / "demo"

Images = npt.NDArray[np.uint8]
Labels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


def load_split() -> tuple[Images, Images, Labels, Labels]:
    """Return the training images, test images, training labels and test labels."""
    digits = load_digits()
    images = digits.images.astype(np.uint8)[..., np.newaxis]
    labels = digits.target.astype(np.uint8)
    if not np.array_equal(images[..., 0], digits.images) or images.max() > 16:
        raise ValueError("the digits are expected to have whole grey values from 0 to 16")
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SHARE, stratify=labels, random_state=SEED
    )
    return train_x, test_x, train_y, test_y


def to_float(images: Images) -> Floats:
    """Return what the float net sees: grey values divided by 16, held below 1 by 1/256."""
    values: Floats = np.minimum(images.astype(np.float32) / 16.0, 255.0 / 256.0).astype(np.float32)
    return values


def quantize(images: Images, scale: float, zero_point: int) -> npt.NDArray[np.int8]:
    """Return the int8 input of the quantized model for images with grey values 0..16."""
    q = np.round(images.astype(np.float64) / 16.0 / scale) + zero_point
    return np.clip(q, -128, 127).astype(np.int8)


def build_net(batch_size: int | None = None) -> tf.keras.Model:
    """Return the untrained net: a residual block with a depthwise convolution, then a classifier."""
    layers = tf.keras.layers
    image = layers.Input((8, 8, 1), batch_size=batch_size, name="picture")
    stem = layers.Conv2D(CHANNELS, 3, padding="same", activation="relu", name="stem")(image)
    x = layers.DepthwiseConv2D(3, padding="same", activation="relu6", name="depthwise")(stem)
    x = layers.Conv2D(CHANNELS, 1, name="pointwise")(x)
    x = layers.Add(name="residual")([stem, x])
    x = layers.ReLU(name="residual_relu")(x)
    x = layers.AveragePooling2D(2, name="pool")(x)
    x = layers.Conv2D(2 * CHANNELS, 3, strides=2, padding="same", activation="relu", name="reduce")(x)
    x = layers.Flatten(name="flatten")(x)
    x = layers.Dropout(0.2, seed=SEED, name="dropout")(x)
    x = layers.Dense(10, name="scores")(x)
    return tf.keras.Model(image, layers.Softmax(name="probabilities")(x), name="digits")


def train(net: tf.keras.Model, images: Images, labels: Labels) -> None:
    """Fit the net for a fixed number of epochs, with a learning rate that falls to zero."""
    steps = EPOCHS * -(-len(images) // BATCH_SIZE)
    rate = tf.keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
    net.compile(tf.keras.optimizers.Adam(rate), "sparse_categorical_crossentropy")
    net.fit(to_float(images), labels, batch_size=BATCH_SIZE, epochs=EPOCHS, verbose=0)


def convert(net: tf.keras.Model, calibration: Images) -> bytes:
    """Return the net as a TFLite model with int8 input and output and a batch size of 1."""

    def representative_data() -> Iterator[list[Floats]]:
        for image in to_float(calibration):
            yield [image[np.newaxis]]

    single = build_net(batch_size=1)
    single.set_weights(net.get_weights())
    converter = tf.lite.TFLiteConverter.from_keras_model(single)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = representative_data
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    model: bytes = converter.convert()
    return model


def classify(model_file: Path, images: Images) -> npt.NDArray[np.int64]:
    """Return the class that the int8 model gives to each of the images."""
    interpreter = tf.lite.Interpreter(model_path=str(model_file))
    interpreter.allocate_tensors()
    (source,) = interpreter.get_input_details()
    (result,) = interpreter.get_output_details()
    if source["dtype"] != np.int8 or result["dtype"] != np.int8:
        raise TypeError("the converted model is expected to have an int8 input and an int8 output")
    scale, zero_point = source["quantization"]
    print(f"input:  {source['shape'].tolist()} int8, scale {scale!r}, zero point {zero_point}")
    out_scale, out_zero_point = result["quantization"]
    print(f"output: {result['shape'].tolist()} int8, scale {out_scale!r}, zero point {out_zero_point}")
    classes = np.empty(len(images), np.int64)
    for i, q in enumerate(quantize(images, scale, zero_point)):
        interpreter.set_tensor(source["index"], q[np.newaxis])
        interpreter.invoke()
        classes[i] = interpreter.get_tensor(result["index"])[0].argmax()
    return classes


def main() -> None:
    """Train, convert, write and check the demo."""
    parser = argparse.ArgumentParser(description="Train and write the embedded demo model of bittrue.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER, help="default: %(default)s")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)

    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()
    train_x, test_x, train_y, test_y = load_split()
    net = build_net()
    train(net, train_x, train_y)
    float_classes = net.predict(to_float(test_x), verbose=0).argmax(axis=1)

    model_file = folder / "digits_int8.tflite"
    model_file.write_bytes(convert(net, train_x))
    digits_file = folder / "digits.npz"
    np.savez_compressed(digits_file, images=test_x[:STORED_DIGITS], labels=test_y[:STORED_DIGITS])

    int8_classes = classify(model_file, test_x)
    accuracy = float(np.mean(int8_classes == test_y))
    print(f"training images {len(train_x)}, test images {len(test_x)}, parameters {net.count_params()}")
    print(f"test accuracy, float: {np.mean(float_classes == test_y):.4f}")
    print(f"test accuracy, int8:  {accuracy:.4f} ({np.sum(int8_classes != test_y)} wrong)")
    for file in (model_file, digits_file):
        print(f"{file}: {file.stat().st_size} bytes")
    if accuracy < MIN_ACCURACY:
        raise SystemExit(f"the int8 model falls short of {MIN_ACCURACY:.0%} on the test split")


if __name__ == "__main__":
    main()
