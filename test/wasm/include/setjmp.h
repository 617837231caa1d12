/* SPDX-License-Identifier: MIT */
/* cmocka wants it to be included; portable/cmocka.h does not use it. */
