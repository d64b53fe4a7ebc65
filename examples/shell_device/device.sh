#!/bin/sh
# An int8 device in POSIX shell, awk and od: ADD, MAXIMUM and MINIMUM of equal shapes, RESHAPE, SQUEEZE.
#
#   device.sh CASE_DIR OUTPUT_DIR
#
# CASE_DIR/parameters.txt says what the case is; values are raw bytes. Exit code 77: nothing here computes that.
set -eu

case_dir=$1
output_dir=$2
# shellcheck disable=SC1091
. "$case_dir/parameters.txt"

refuse() {
  echo "$*"
  exit 77
}

# Signed bytes of a file, one a line.
values() {
  od -An -v -t d1 "$case_dir/$1" | tr -s ' ' '\n' | sed '/^$/d'
}

# Numbers from -128 to 127, one a line, as bytes.
bytes() {
  # shellcheck disable=SC2059
  printf "$(awk '{ printf "\\%03o", ($1 < 0 ? $1 + 256 : $1) }')"
}

# Both inputs, a pair a line.
pairs() {
  values "$input_1_file" > "$output_dir/second"
  values "$input_0_file" | paste - "$output_dir/second"
  rm "$output_dir/second"
}

# What every operator here needs: known versions, int8 everywhere, one scale, int8 zero points.
case $operator in
  ADD | MAXIMUM | MINIMUM) operands=2 newest=5 ;;
  RESHAPE | SQUEEZE) operands=1 newest=2 ;;
  *) refuse "no $operator in this shell" ;;
esac
[ "${version:-1000}" -le "$newest" ] || refuse "$operator of version ${version-unknown}"
[ "$inputs" = "$operands" ] || refuse "$operator of $inputs inputs"
last=$((operands - 1))
for tensor in input_0 "input_$last" output_0; do
  eval "type=\${${tensor}_type-} scale=\${${tensor}_scale-} zero_point=\${${tensor}_zero_point-}"
  [ "$type" = s8 ] || refuse "$tensor is ${type:-missing}"
  case $scale in '' | *' '*) refuse "$tensor has no scale, or several" ;; esac
  { [ "$zero_point" -ge -128 ] && [ "$zero_point" -le 127 ]; } || refuse "$tensor has zero point $zero_point"
  [ "$operator" = ADD ] || [ "$scale $zero_point" = "$input_0_scale $input_0_zero_point" ] ||
    refuse "$operator between different scales or zero points"
done
output=$output_dir/output-0.bin

# Does one open extent, at most, make the wanted shape one of as many values?
reshapes() {
  echo "$@" | awk -v size="$input_0_size" '{
    known = 1
    for (i = 1; i <= NF; i++) { if ($i < -1) exit 1; if ($i == -1) open++; else known *= $i }
    exit !(open ? open == 1 && known && size % known == 0 : known == size)
  }'
}

# Has every squeezed axis, counted from either end, extent 1?
squeezes() {
  echo "$input_0_shape:$*" | awk -F: '{
    rank = split($1, shape, " "); count = split($2, axes, " ")
    for (i = 1; i <= count; i++) {
      axis = axes[i] < 0 ? axes[i] + rank : axes[i]
      if (axis < 0 || axis >= rank || shape[axis + 1] != 1) exit 1
    }
  }'
}

case $operator in
  ADD | MAXIMUM | MINIMUM)
    [ "$input_0_shape" = "$input_1_shape" ] || refuse "$operator of different shapes"
    ;;
  RESHAPE)
    wanted=$attribute_new_shape
    [ "$constants" = 0 ] || wanted=$(od -An -v -t d4 "$case_dir/constant-0.bin")
    # Words, one per extent.
    # shellcheck disable=SC2086
    reshapes $wanted || refuse "RESHAPE of $input_0_size values to $wanted"
    ;;
  SQUEEZE)
    squeezes "$attribute_squeeze_dims" || refuse "SQUEEZE of axes $attribute_squeeze_dims"
    ;;
esac

case $operator in
  RESHAPE | SQUEEZE)
    # Not a byte changes.
    cp "$case_dir/$input_0_file" "$output"
    ;;
  MAXIMUM) pairs | awk '{ print ($1 > $2 ? $1 : $2) }' | bytes > "$output" ;;
  MINIMUM) pairs | awk '{ print ($1 < $2 ? $1 : $2) }' | bytes > "$output" ;;
  ADD)
    # The integers that LiteRT's reference kernels would use; every number below stays under 2^53, so it is exact.
    pairs | awk \
      -v zero1="$step0_first_zero_point" -v m1="$step0_first_multiplier" -v e1="$step0_first_exponent" \
      -v zero2="$step0_second_zero_point" -v m2="$step0_second_multiplier" -v e2="$step0_second_exponent" \
      -v zero="$step0_output_zero_point" -v m="$step0_multiplier" -v e="$step0_exponent" \
      -v low="$step0_low" -v high="$step0_high" '
      function floor(x) { return x < int(x) ? int(x) - 1 : int(x) }
      # x * m / 2^31 with ties up: the multiplier is taken in two parts.
      function product(x, m, upper) {
        upper = int(m / 65536)
        return floor((x * upper + floor((x * (m - upper * 65536) + 1073741824) / 65536)) / 32768)
      }
      # x * 2^e with ties away from zero.
      function divided(x, e) { return x < 0 ? -floor(-x * 2 ^ e + 0.5) : floor(x * 2 ^ e + 0.5) }
      function rescaled(x, m, e) { return divided(product(x, m), e) }
      {
        sum = rescaled(($1 - zero1) * 1048576, m1, e1) + rescaled(($2 - zero2) * 1048576, m2, e2)
        y = rescaled(sum, m, e) + zero
        print (y < low ? low : (y > high ? high : y))
      }' | bytes > "$output"
    ;;
esac
