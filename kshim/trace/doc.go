// Package trace prints the calls that pass the system-call line, as strace
// does: a line for each call, with its arguments and its answer taken apart by
// the kernel's names.
//
//	[4711 sim0] ioctl(3, INVOKE_WRITE ALLOC_PD {}) = 0 {pd_handle=0}
//	[4711 sim0] write(3, POST_SEND {qp_handle=0, wr_count=0, sge_count=0, wqe_size=56}) = 32
//	[4711 sim0] ioctl(3, INVOKE_WRITE DEALLOC_PD {pd_handle=7}) = -1 ENOENT (No such file or directory)
//
// New wraps any kshim.Kernel, the emulated or the real one; Env does when the
// environment asks for it. The package changes nothing: every call is handed on
// as it came, and its answer is returned.
//
// A call flows: the wrapped File copies the command, and the memory that it
// points to, out of the ranges that Pin announced (memory.go); makes the call;
// copies the response out likewise; and prints one line with one Write
// (kernel.go, file.go). Commands and methods are described by abi.Schema
// (command.go, method.go, cm.go), and structures print themselves by reflection
// over kshim/abi (value.go). Bytes that the schema does not know, or that are
// too short for their structure, print in hexadecimal. spans.go writes the same
// as a span of OpenTelemetry, if that is asked for.
//
// It is a debugging aid: it allocates and takes locks. It does not see work
// requests and completions, which never pass through a call.
package trace
