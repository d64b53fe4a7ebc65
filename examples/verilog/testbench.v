// Streams the accumulators of every exported case through `requantize` and compares every code.
//
// parameters.vh (the table of cases) and the .hex files are what `bittrue vectors --format hex --accumulators` wrote to
// one folder per operator; the folder is given with +vectors=FOLDER, and to the compiler with -I FOLDER.
`timescale 1ns / 1ns
module testbench;
    `include "parameters.vh"

    localparam LATENCY = 3;

    reg [31:0] accumulators [0:ACCUMULATOR_0_DEPTH-1];
    reg [31:0] multipliers [0:MULTIPLIER_DEPTH-1];
    reg [31:0] exponents [0:EXPONENT_DEPTH-1];
    reg [ 7:0] expected [0:OUTPUT_0_DEPTH-1];

    reg clk = 0;
    reg signed [31:0] acc, multiplier, zero_point;
    reg signed [7:0] exponent, low, high_end;
    wire signed [7:0] code;
    requantize unit (clk, acc, multiplier, exponent, zero_point, low, high_end, code);
    always #5 clk = !clk;

    // The table's columns for one case; every column has 32 bits per case.
    integer number, count, channels, first_acc, first_code, first_multiplier, first_exponent;
    task look_up(input integer n);
        begin
            count = ACCUMULATOR_0_ELEMENTS[32*n +: 32];
            channels = MULTIPLIER_COUNT[32*n +: 32];
            first_acc = ACCUMULATOR_0_START[32*n +: 32];
            first_code = OUTPUT_0_START[32*n +: 32];
            first_multiplier = MULTIPLIER_START[32*n +: 32];
            first_exponent = EXPONENT_START[32*n +: 32];
            zero_point = OUTPUT_ZERO_POINT[32*n +: 32];
            low = LOW[32*n +: 32];
            high_end = HIGH[32*n +: 32];
        end
    endtask

    reg [8*256-1:0] folder;
    integer i, done, wrong, passed, failed;
    reg signed [31:0] shown_acc, shown_multiplier, shown_exponent;
    reg signed [7:0] wanted;
    initial begin
        if (!$value$plusargs("vectors=%s", folder)) begin
            $display("no +vectors=FOLDER");
            $finish;
        end
        $readmemh({folder, "/accumulator-0.hex"}, accumulators);
        $readmemh({folder, "/multiplier.hex"}, multipliers);
        $readmemh({folder, "/exponent.hex"}, exponents);
        $readmemh({folder, "/output-0.hex"}, expected);
        passed = 0;
        failed = 0;
        for (number = 0; number < CASES; number = number + 1) begin
            look_up(number);
            wrong = 0;
            // Cases without an accumulator or a multiplier are not for this unit.
            if (count > 0 && channels > 0) begin
                for (i = 0; i < count + LATENCY; i = i + 1) begin
                    @(negedge clk);
                    done = i - LATENCY;
                    if (done >= 0 && code !== expected[first_code + done]) begin
                        wrong = wrong + 1;
                        if (wrong == 1) begin
                            // Channels are innermost; one multiplier may serve them all.
                            shown_acc = accumulators[first_acc + done];
                            shown_multiplier = multipliers[first_multiplier + done % channels];
                            shown_exponent = exponents[first_exponent + done % channels];
                            wanted = expected[first_code + done];
                            $display("case %0d, element %0d: accumulator %0d, multiplier %0d, exponent %0d: expected %0d, got %0d",
                                     number, done, shown_acc, shown_multiplier, shown_exponent, wanted, code);
                        end
                    end
                    if (i < count) begin
                        acc = accumulators[first_acc + i];
                        multiplier = multipliers[first_multiplier + i % channels];
                        exponent = exponents[first_exponent + i % channels];
                    end
                end
                if (wrong == 0) begin
                    passed = passed + 1;
                    $display("case %0d: PASS %0d codes", number, count);
                end else begin
                    failed = failed + 1;
                    $display("case %0d: FAIL %0d of %0d codes", number, wrong, count);
                end
            end
        end
        $display("%0d cases passed, %0d failed", passed, failed);
        $finish;
    end
endmodule
