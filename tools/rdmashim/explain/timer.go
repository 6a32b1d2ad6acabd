package explain

import (
	"fmt"
	"strconv"

	"github.com/rdmashim/rdmashim/rnic/wire"
)

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
