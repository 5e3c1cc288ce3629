/**
 * The machine went to sleep or ended while a connection to it was being made, or its guest ended with a request: the
 * request needs a new lease.
 */
export class MachineLeft extends Error {
  override name = "MachineLeft";
}
