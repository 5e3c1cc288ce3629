#!/usr/bin/env node
/** Packs the images of the demos, if they are not there or something changed. The setup runs this with the Node that it brings. */
import { packCounter } from "./pack-counter.mjs";
import { packOrders } from "./pack-orders.mjs";

const onStep = (/** @type {string} */ step) => console.error(step);
await packCounter({ onStep });
await packOrders({ onStep });
