/** Shapes of the actions on a machine. */
import { Type } from "typebox";
import { closed, machineState } from "../schemas.ts";

/** A start that was accepted. */
export const StartReply = Type.Object({ ok: Type.Literal(true), previous_state: machineState }, closed);
