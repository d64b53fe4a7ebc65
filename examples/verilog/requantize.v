// Requantize and clamp: a 32-bit accumulator to an 8-bit code, as LiteRT's reference kernels do it.
//
//   shifted = acc * 2^max(exponent, 0), kept in 32 bits
//   high    = shifted * multiplier / 2^31, rounded, ties up               (first rounding)
//   scaled  = high / 2^max(-exponent, 0), rounded, ties away from zero    (second rounding)
//   code    = min(max(scaled + zero_point, low), high_end)
//
// The multiplier lies in [2^30, 2^31), or is 0; the exponent between -31 and 30. One result per clock, three clocks
// after its accumulator.
module requantize (
    input  wire               clk,
    input  wire signed [31:0] acc,
    input  wire signed [31:0] multiplier,
    input  wire signed [ 7:0] exponent,
    input  wire signed [31:0] zero_point,
    input  wire signed [ 7:0] low,
    input  wire signed [ 7:0] high_end,
    output reg  signed [ 7:0] code
);
    // First clock: the full product.
    wire [4:0] left = exponent > 0 ? exponent[4:0] : 5'd0;
    wire signed [31:0] shifted = acc <<< left;
    reg signed [63:0] product;
    reg [5:0] right;
    always @(posedge clk) begin
        product <= shifted * multiplier;
        right <= exponent < 0 ? -exponent : 6'd0;
    end

    // Second clock: its high half, ties up.
    wire signed [63:0] raised = product + (64'sd1 <<< 30);
    reg signed [31:0] high;
    reg [5:0] right_later;
    always @(posedge clk) begin
        high <= raised >>> 31;
        right_later <= right;
    end

    // Third clock: the power of two, ties away from zero; zero point and clamp.
    wire [31:0] mask = (32'd1 << right_later) - 32'd1;
    wire [31:0] remainder = high & mask;
    wire [31:0] threshold = (mask >> 1) + (high < 0 ? 32'd1 : 32'd0);
    wire signed [31:0] floored = high >>> right_later;
    wire signed [32:0] scaled = floored + (remainder > threshold ? 33'sd1 : 33'sd0);
    wire signed [33:0] sum = scaled + zero_point;
    always @(posedge clk)
        code <= sum < low ? low : sum > high_end ? high_end : sum[7:0];
endmodule
