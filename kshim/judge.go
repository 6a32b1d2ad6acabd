package kshim

import "github.com/rdmashim/rdmashim/kshim/abi"

// Judge decides about a completion with success before its program sees it: the
// fault of a test. It neither blocks nor calls the kernel, whose locks may be
// held.
type Judge func(abi.WCOpcode) Verdict

// Verdict is what becomes of a completion and its queue pair.
type Verdict struct {
	Status abi.WCStatus // that the program sees; WCSuccess leaves the completion
	Error  bool         // the queue pair goes to ERR, and what follows is flushed
	// Events follow, of the completion's queue pair, its queue, port 1 or the
	// whole device: after DEVICE_FATAL the program's file has no device.
	Events []abi.EventType
}

// Judged is an optional part of a Kernel that writes its completions itself, in
// this process. Of other kernels the client judges them as it takes them.
type Judged interface {
	// SetJudge is called before the first file is opened.
	SetJudge(Judge)
}
