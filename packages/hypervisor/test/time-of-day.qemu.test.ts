/**
 * @module-tag again
 */
import { describeTimeOfDay } from "./conformance.ts";
import { openQemu } from "./qemu-harness.ts";

describeTimeOfDay("QEMU", openQemu);
