// Package cprograms brings C programs of the RDMA world into guests: perftest,
// rdma-core's examples and rping, as the distribution packages them, with the
// verbs library, its driver for rxe, and every shared library that they load.
//
// The packages are fetched with apt-get and unpacked below the user's cache;
// nothing is installed, and nothing is fetched twice. It runs no program and
// knows nothing of their output.
//
// A call flows: Adds unpacks the packages that are not there yet (Unpacked),
// asks the dynamic linker for each program's libraries (ProgramAdds), and adds
// those that no program lists. The result goes into vm.Config.Add.
package cprograms
