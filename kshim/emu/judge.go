package emu

import (
	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/driver"
)

// judgedQueue is a completion queue of a process whose completions are judged.
type judgedQueue struct {
	*completionQueue
	judge kshim.Judge
}

var _ driver.CQJudge = judgedQueue{}

// events is the queue as the device sees it.
func (q *completionQueue) events() driver.CQEvents {
	if j := q.file.proc.judge; j != nil {
		return judgedQueue{q, j}
	}
	return q
}

// Judge implements driver.CQJudge.
func (q judgedQueue) Judge(op abi.WCOpcode, qp driver.QPEvents) (status abi.WCStatus, toERR bool) {
	v := q.judge(op)
	for _, e := range v.Events {
		switch {
		case e == abi.EventDeviceFatal:
			go q.file.disassociate() // it takes the device's locks
		case e.Element() == abi.ElementCQ:
			q.Error()
		case e.Element() == abi.ElementQP:
			qp.Event(e)
		default:
			q.file.portEvent(e)
		}
	}
	return v.Status, v.Error
}

// portEvent posts an event of port 1 to this file only.
func (f *uverbsFile) portEvent(e abi.EventType) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for async := range f.asyncs {
		async.sourceOf(deviceEvent{1, e}).post()
	}
}
