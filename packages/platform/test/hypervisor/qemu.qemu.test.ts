import { longOr } from "../helpers/long.ts";
import { describeHypervisor } from "./conformance.ts";
import { openQemu } from "./qemu-harness.ts";

describeHypervisor("QEMU", openQemu, { moments: longOr(60, 10) });
