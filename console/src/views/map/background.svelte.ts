/** The background that the user chose; it stays while views change, and is never sent anywhere. */
import { LONGEST_FILE, readBackground, type Background } from "../../model/background";
import { BadMessage } from "../../model/check";
import type { Meta } from "../../schema/messages";

class Chosen {
  shown = $state.raw<Background | null>(null);
  problem = $state("");

  async open(file: File, meta: Meta): Promise<void> {
    this.remove();
    try {
      if (file.size > LONGEST_FILE) throw new BadMessage("This file is larger than 32 MiB.");
      this.shown = readBackground(await file.text(), meta);
    } catch (error) {
      if (!(error instanceof BadMessage)) throw error;
      this.problem = error.message;
    }
  }

  remove(): void {
    this.shown = null;
    this.problem = "";
  }
}

export const chosen = new Chosen();
