package flow

import (
	"fmt"
	"strings"
	"time"
)

// Remark is a comment on a packet.
type Remark struct {
	Kind RemarkKind
	Text string // a sentence without a full stop
}

// RemarkKind sorts remarks. The words are stable.
type RemarkKind string

const (
	Retransmission RemarkKind = "retransmission"
	OutOfOrder     RemarkKind = "out-of-order"
	Gap            RemarkKind = "gap"
	NAK            RemarkKind = "nak"
	RNR            RemarkKind = "rnr"
	Repeated       RemarkKind = "repeated-answer"
	Damaged        RemarkKind = "damaged"
	Congestion     RemarkKind = "congestion"
	Rejected       RemarkKind = "rejected"
	Anew           RemarkKind = "anew"
)

// brief writes a duration with three digits.
func brief(d time.Duration) string {
	switch {
	case d < 0:
		d = 0
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	default:
		d = d.Round(100 * time.Nanosecond)
	}
	return strings.Replace(d.String(), "µ", "u", 1)
}

// plural is "1 packet" or "n packets".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
