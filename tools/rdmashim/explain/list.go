package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/refuse"
	"github.com/rdmashim/rdmashim/rnic/link/rules"
	"github.com/rdmashim/rdmashim/rnic/wire"
	"github.com/rdmashim/rdmashim/uapi"
)

func statusList() (list []Entry) {
	for s := abi.WCSuccess; s <= abi.WCGeneralErr; s++ {
		e := factOf(Status, s.String()).entry(Status, int(s), s.String(), "IBV_WC_"+s.String())
		e.Means = uapi.Status(s).Explanation()
		list = append(list, e)
	}
	return list
}

// errnoList has Linux's numbers, whatever system this program runs on: numbers
// in traces and messages of an RDMA program are of the kernel that it ran on.
func errnoList() (list []Entry) {
	for _, f := range facts() {
		if f.kind == Errno {
			e := f.entry(Errno, f.number, f.name)
			e.Also = slices.Insert(e.Also, 1, strconv.Itoa(-f.number))
			list = append(list, e)
		}
	}
	return list
}

func eventList() (list []Entry) {
	for n := abi.EventCQErr; n <= abi.EventWQFatal; n++ {
		list = append(list, factOf(Event, n.String()).entry(Event, int(n), n.String(), "IBV_EVENT_"+n.String()))
	}
	return list
}

func cmEventList() (list []Entry) {
	for n := abi.UCMEventAddrResolved; n <= abi.UCMEventTimewaitExit; n++ {
		list = append(list, factOf(CMEvent, n.String()).entry(CMEvent, int(n), n.String(), "RDMA_CM_EVENT_"+n.String()))
	}
	return list
}

func faultList() (list []Entry) {
	add := func(form, name, of, text string) {
		list = append(list, Entry{
			Kind: Fault, Number: len(list), Name: form, Also: []string{name}, Means: of + text, Causes: []string{}, Look: []string{"docs/faults.md"},
		})
	}
	for i := range rules.Grammar {
		w := &rules.Grammar[i]
		add(w.String(), w.Name, "", w.Text)
	}
	for i := range refuse.Grammar {
		w := &refuse.Grammar[i]
		add(w.String(), w.Name, "of calls and completions: ", w.Text)
	}
	return list
}

func rejectList() (list []Entry) {
	for n := wire.RejectReason(1); n <= wire.RejVendorUnsupported; n++ {
		text, name := n.String(), abi.UCMRejReason(n).String()
		if text == fmt.Sprintf("reason %d", n) {
			continue
		}
		e := factOf(Reject, name).entry(Reject, int(n), name, "REJ "+text, text)
		e.Means = "the peer rejected the connection: " + text
		if len(e.Look) == 0 {
			e.Look = []string{"REQ and REJ in rdmashim dump"}
		}
		list = append(list, e)
	}
	return list
}

var positions = map[wire.Position]string{
	wire.First:  "the first of several packets of its message",
	wire.Middle: "neither the first nor the last of its message, always a full path MTU long",
	wire.Last:   "the last of several packets of its message",
	wire.Only:   "all of its message",
}

func opcodeList() (list []Entry) {
	for n := range 256 {
		op := wire.Opcode(n)
		if !op.Known() {
			continue
		}
		e := factOf(Opcode, op.Operation().String()).entry(Opcode, n, op.String(), fmt.Sprintf("0x%02x", n))
		e.Means = fmt.Sprintf("a packet that %s; %s", e.Means, positions[op.Position()])
		if s := op.Suffix(); s != wire.Plain {
			e.Means += ", " + s.String()
		}
		if bare, ok := strings.CutPrefix(e.Name, "RC "); ok {
			e.Also = append(e.Also, bare, "RC "+strings.TrimPrefix(bare, "RDMA_"))
		}
		e.Packet = packetOf(op)
		list = append(list, e)
	}
	return list
}

func packetOf(op wire.Opcode) *Packet {
	p := &Packet{
		Service: op.Service().String(), Operation: op.Operation().String(), Position: op.Position().String(),
		Direction: "notification", Headers: []string{}, HeaderBytes: op.HeaderLen(), Payload: op.HasPayload(),
	}
	switch {
	case op.IsRequest():
		p.Direction = "request"
	case op.IsResponse():
		p.Direction = "response"
	}
	if h := op.Headers(); h != 0 {
		p.Headers = strings.Split(h.String(), "+")
	}
	return p
}

// syndromeList: the codes of a NAK are in facts.txt (IBA 9.7.5.2).
func syndromeList() (list []Entry) {
	for n := range 256 {
		s := wire.Syndrome(n)
		name := ""
		if !s.IsACK() && !s.IsRNR() {
			name = s.NAK().String()
		}
		e := factOf(Syndrome, name).entry(Syndrome, n, s.String(), fmt.Sprintf("0x%02x", n))
		switch {
		case s.IsReserved():
			continue
		case s.IsACK():
			e.ack(s)
		case s.IsRNR():
			e.rnr(s)
		default:
			e.Also = append(e.Also, name)
		}
		list = append(list, e)
	}
	return list
}

func (e *Entry) ack(s wire.Syndrome) {
	e.Means = "a positive acknowledgement of every request up to its PSN"
	e.Causes = []string{"nothing is wrong"}
	if n, limited := wire.CreditCount(s.Credits()); limited {
		e.Means += fmt.Sprintf("; %d more requests that use up a receive may be sent", n)
		e.Look = []string{"a requester that heeds credits waits at 0 until an ACK brings more"}
		return
	}
	e.Means += ", without credits: the requester is not limited by them"
}

func (e *Entry) rnr(s wire.Syndrome) {
	t := s.RNRTimer()
	ms := float64(t.Nanoseconds()) / 1e6
	e.Milliseconds = &ms
	e.Means = fmt.Sprintf("receiver not ready: no receive was posted for this request; the requester waits %v and sends it again", t)
	e.Also = append(e.Also, fmt.Sprintf("RNR %d", uint8(t)), fmt.Sprintf("RNR NAK %d", uint8(t)))
	e.Causes = []string{"the peer posts receives later than SENDs, or WRITEs with immediate, arrive", "it posts fewer than may be under way"}
	e.Look = []string{"the peer's posting of receives", "rnr_retry of the requester: when it is used up the completion says RNR_RETRY_EXC_ERR", "the time is min_rnr_timer of the queue pair that answers"}
}

func timerList() (list []Entry) {
	for n := range 32 {
		t := wire.RNRTimer(n)
		ms := float64(t.Nanoseconds()) / 1e6
		e := Entry{Kind: Timer, Name: fmt.Sprintf("RNR timer %d", n), Number: n, Milliseconds: &ms,
			Also:   []string{fmt.Sprintf("min_rnr_timer %d", n), t.String(), fmt.Sprintf("syndrome 0x%02x", uint8(wire.SyndromeRNR(t)))},
			Means:  fmt.Sprintf("a requester that gets an RNR NAK with this code waits %v", t),
			Causes: []string{}, Look: []string{"min_rnr_timer in the attributes of the queue pair that receives", "(rnr_retry + 1) × this time is how long a peer may be without a receive; rnr_retry 7 is for ever"}}
		if n == 0 {
			e.Look = append(e.Look, "0 is the longest time, not none")
		}
		list = append(list, e)
	}
	return list
}

func timeoutList() (list []Entry) {
	for n := range 32 {
		t := wire.AckTimeout(n)
		ms := float64(t.Nanoseconds()) / 1e6
		text := strconv.FormatFloat(ms, 'g', 6, 64) + " ms"
		e := Entry{Kind: Timeout, Name: fmt.Sprintf("ACK timeout %d", n), Number: n, Also: []string{fmt.Sprintf("local_ack_timeout %d", n), text}, Milliseconds: &ms,
			Means:  fmt.Sprintf("a requester waits %s (4.096 µs × 2^%d) for an acknowledgement before it sends again", text, n),
			Causes: []string{}, Look: []string{
				"(retry_cnt + 1) × this time until RETRY_EXC_ERR; rdma_rxe of Linux 6.1 repeats for ever with retry_cnt 7",
				"devices may wait up to four times as long (IBA 9.7.6.1.3)"}}
		if n == 0 {
			e.Milliseconds, e.Also = nil, e.Also[:1]
			e.Means = "a requester waits for ever: a lost packet at the end of a message is never repeated"
		}
		list = append(list, e)
	}
	return list
}
