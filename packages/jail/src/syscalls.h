/*
 * System calls that nothing in a jail needs: QEMU makes none of them once it is started like this, and each is a door that
 * attacks on kernels have come through. QEMU's own filter comes on top.
 */
#pragma once

/* Refuses them from now on, with EPERM. Needs that there are no new privileges. */
void syscalls_refuse(void);
