// Streams the accumulators of one exported case through `requantize` and compares every code.
//
// parameters.vh and the .hex files are what `bittrue vectors --format hex --accumulators` wrote; the case's folder is
// given with +case=FOLDER.
`timescale 1ns / 1ns
module testbench;
    `include "parameters.vh"

    localparam COUNT = ACCUMULATOR_0_ELEMENTS;
    localparam LATENCY = 3;

    reg [31:0] accumulators [0:COUNT-1];
    reg [31:0] multipliers [0:MULTIPLIER_0_ELEMENTS-1];
    reg [31:0] exponents [0:EXPONENT_0_ELEMENTS-1];
    reg [ 7:0] expected [0:COUNT-1];

    reg clk = 0;
    reg signed [31:0] acc, multiplier;
    reg signed [7:0] exponent;
    wire signed [7:0] code;
    wire signed [31:0] zero_point = OUTPUT_ZERO_POINT;
    wire signed [7:0] low = LOW;
    wire signed [7:0] high_end = HIGH;
    requantize unit (clk, acc, multiplier, exponent, zero_point, low, high_end, code);
    always #5 clk = !clk;

    reg [8*256-1:0] folder;
    integer i, channel, wrong;
    reg signed [31:0] shown_acc, shown_multiplier, shown_exponent;
    reg signed [7:0] wanted;
    initial begin
        if (!$value$plusargs("case=%s", folder)) begin
            $display("no +case=FOLDER");
            $finish;
        end
        $readmemh({folder, "/accumulator-0.hex"}, accumulators);
        $readmemh({folder, "/multiplier-0.hex"}, multipliers);
        $readmemh({folder, "/exponent-0.hex"}, exponents);
        $readmemh({folder, "/output-0.hex"}, expected);
        wrong = 0;
        for (i = 0; i < COUNT + LATENCY; i = i + 1) begin
            // Channels are innermost; one multiplier may serve them all.
            channel = i % MULTIPLIER_0_ELEMENTS;
            @(negedge clk);
            if (i >= LATENCY && code !== expected[i - LATENCY]) begin
                wrong = wrong + 1;
                if (wrong == 1) begin
                    shown_acc = accumulators[i - LATENCY];
                    shown_multiplier = multipliers[(i - LATENCY) % MULTIPLIER_0_ELEMENTS];
                    shown_exponent = exponents[(i - LATENCY) % MULTIPLIER_0_ELEMENTS];
                    wanted = expected[i - LATENCY];
                    $display("  element %0d: accumulator %0d, multiplier %0d, exponent %0d: expected %0d, got %0d",
                             i - LATENCY, shown_acc, shown_multiplier, shown_exponent, wanted, code);
                end
            end
            if (i < COUNT) begin
                acc = accumulators[i];
                multiplier = multipliers[channel];
                exponent = exponents[channel];
            end
        end
        if (wrong == 0) $display("PASS %0d codes", COUNT);
        else $display("FAIL %0d of %0d codes", wrong, COUNT);
        $finish;
    end
endmodule
