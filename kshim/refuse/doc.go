// Package refuse makes calls of a kernel fail by rules, as a kernel without
// memory or a broken device would: programs test what they never see.
//
//	call=CREATE_QP nth=2 errno=ENOMEM
//	call=POST_SEND errno=EAGAIN every=10
//
// A rule names a call and the errno that it is answered in the kernel's place.
// The names are those of a trace (kshim/trace): a command, INVOKE_WRITE's
// included, a method (CQ_CREATE), a command of rdma_cm (BIND_IP), or open and
// mmap. nth= counts the calls of that name in a process, from 1, every= takes
// each tenth, once= the first.
//
// New wraps any kshim.Kernel; Env does when the environment asks for it, and Of
// a file that the program finds by its number. A call flows: the wrapped File
// reads the command's name, asks the rules (rules.go), and answers, or hands
// the call on as it came. The package sees neither work requests nor
// completions, which never pass through a call: for those there are rules of
// packets (rnic/link/rules).
package refuse
