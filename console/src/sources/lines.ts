/** Text of a recording as lines, while it arrives. */
import { BadMessage, parseMessage } from "../model/check";
import { Run } from "../model/run";

/** Longest line, characters, as the Rust reader has it: protects the memory of the browser. */
const LONGEST_LINE = 32 << 20;

/** Error for a file that is something else. */
const FOREIGN = "This is not a recording of ncmesh: it is not made by --record.";

/** Yields the lines of a stream, without their ends. The last one may lack its end. */
async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    rest += decoder.decode(value, { stream: !done });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LONGEST_LINE) throw new BadMessage("a line is longer than any message");
    yield* lines;
    if (done) break;
  }
  if (rest) throw new Error("the last line has no end");
}

/**
 * Reads a recording, compressed with gzip, into a run.
 *
 * A recording that is cut off or damaged is shown up to there, and `problem` of the run says so.
 * Throws `BadMessage` if there is nothing to show.
 */
export async function readRecording(
  name: string,
  compressed: ReadableStream<Uint8Array>,
): Promise<Run> {
  const run = new Run(name);
  let lines = 0;
  try {
    // The types of TypeScript and of the DOM disagree about the buffers of these streams.
    const gzip = new DecompressionStream("gzip") as unknown as TransformStream<
      Uint8Array,
      Uint8Array
    >;
    for await (const line of linesOf(compressed.pipeThrough(gzip))) {
      lines += 1;
      addLine(run, line, lines);
    }
  } catch (error) {
    if (lines === 0) throw new BadMessage(FOREIGN);
    // Anything else comes from the decompression, and means that the file ends early.
    if (error instanceof BadMessage) run.problem = error.message;
  }
  if (run.timeline.length === 0) throw new BadMessage(run.problem || FOREIGN);
  if (!run.timeline.isOver && !run.problem) {
    run.problem =
      `The recording is cut off after ${lines} lines: copy the file again, or record the run ` +
      "again. What is there is shown.";
  }
  return run;
}

function addLine(run: Run, line: string, number: number): void {
  try {
    run.push(parseMessage(line));
  } catch (error) {
    if (!(error instanceof BadMessage)) throw error;
    // The first line tells other versions and other files.
    if (number === 1) throw new BadMessage(`This recording cannot be read: ${error.message}.`);
    throw new BadMessage(`Line ${number} is damaged: ${error.message}.`);
  }
}
