// Package refuse makes calls and completions of a kernel fail by rules, as a
// kernel without memory or a broken device would, and raises events: programs
// test what they never see.
//
//	call=CREATE_QP nth=2 errno=ENOMEM
//	wc=SEND nth=5 status=REM_OP_ERR
//	event=DEVICE_FATAL after=10
//
// The words are those of Grammar; docs and 'rdmashim explain' print it. Calls
// have the names of a trace (kshim/trace): a command, INVOKE_WRITE's included,
// a method (CQ_CREATE), a command of rdma_cm (BIND), or open and mmap. Rules
// count in a process.
//
// New wraps any kshim.Kernel; Env does when the environment asks for it, and Of
// a file that the program finds by its number. A call flows: the wrapped File
// reads the command's name, asks the rules (rules.go), and answers, or hands
// the call on as it came.
//
// Completions pass through no call, so the rules are given on as a kshim.Judge:
// to the mini kernel, whose device asks it before it writes a completion into
// the ring of any program; of other kernels to their client (kshim/verbs), so
// that C programs on them are out of reach. Packets have rules of their own
// (rnic/link/rules).
package refuse
