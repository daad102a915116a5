// SPDX-License-Identifier: GPL-2.0-only
/*
 * weft_test: KUnit tests of code that needs a kernel (locks, RCU, allocation, the
 * structures of sockets). The tests include the files that they test, so these need no
 * hooks for tests. Code that needs no kernel is tested in user space (tests/).
 *
 * Loading the module runs them, if the kernel was started with kunit.enable=1;
 * results are in the kernel log.
 */
#include <linux/module.h>

MODULE_DESCRIPTION("Tests of the MPTCP schedulers' common part");
MODULE_LICENSE("GPL");
