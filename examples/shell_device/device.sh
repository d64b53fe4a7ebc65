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

[ "${input_0_type-}" = s8 ] || refuse "values of type ${input_0_type-unknown}"
output=$output_dir/output-0.bin

case $operator in
  ADD | MAXIMUM | MINIMUM)
    [ "$inputs" = 2 ] || refuse "$operator with a constant"
    [ "$input_0_shape" = "$input_1_shape" ] || refuse "$operator of different shapes"
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
  *)
    refuse "no $operator in this shell"
    ;;
esac
