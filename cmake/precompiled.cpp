// SPDX-License-Identifier: Apache-2.0
// The object that cmake/precompiled.hpp is compiled for.
