package top

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Text is the frame for people: a line a port, then a line a queue pair, the
// busiest of each device first. A height of more than 0 is how many lines there
// is room for, a width how many characters.
func (f *Frame) Text(width, height int) string {
	pairs := 0
	for i := range f.Devices {
		pairs += len(f.Devices[i].Pairs)
	}
	lines := []string{fmt.Sprintf("%s  %s, %s", f.Time.Format(time.TimeOnly), count(len(f.Devices), "device"), count(pairs, "queue pair"))}
	if len(f.Devices) > 0 {
		lines = append(lines, f.ports()...)
	}
	if pairs > 0 {
		lines = append(append(lines, ""), f.pairs()...)
	}
	if height > 0 && len(lines) > height {
		hidden := len(lines) - height + 1
		lines = append(lines[:height-1], fmt.Sprintf("… %s more", count(hidden, "line")))
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(cut(strings.TrimRight(l, " "), width))
		b.WriteByte('\n')
	}
	return b.String()
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cut shortens a line to a width; 0 is any.
func cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width])
}

func (f *Frame) ports() []string {
	rows := [][]string{strings.Fields("PORT PID PROCESS STATE TX/s RX/s SHMTX/s SHMRX/s TXPKT/s RXPKT/s MSG/s RETX/s TMO/s NAK/s RNR/s DROP/s CAUSES")}
	for i := range f.Devices {
		d := &f.Devices[i]
		for j := range d.Ports {
			p := &d.Ports[j]
			row := []string{fmt.Sprintf("%s/%d", d.Name, p.Port.Port), pid(d.PID), cli.Dash(d.Process), p.State}
			row = append(row, columns(p.Counters, p.moved, d.Seconds, true)...)
			rows = append(rows, append(row, causes(p.moved, d.Seconds)))
		}
	}
	return align(rows, 0, 2, 3, 16)
}

func (f *Frame) pairs() []string {
	rows := [][]string{strings.Fields("QP PID TYPE STATE PEER WAY TX/s RX/s TXPKT/s RXPKT/s MSG/s RETX/s TMO/s NAK/s RNR/s OUT FLIGHT WINDOW RTT")}
	for i := range f.Devices {
		d := &f.Devices[i]
		for j := range d.Pairs {
			q := &d.Pairs[j]
			row := []string{fmt.Sprintf("%s/%d", d.Name, q.QPN), pid(cmp.Or(q.PID, d.PID)), q.Type, q.State, peer(&q.QueuePair), cli.Dash(q.Way)}
			c := columns(q.Counters, q.moved, d.Seconds, false)
			if q.Counters == nil && q.Rates != nil { // a kernel device's
				c[2], c[3] = "~"+number(q.Rates["sq_psn"]), "~"+number(q.Rates["rq_psn"])
			}
			rows = append(rows, append(append(row, c...), requester(q.Requester)...))
		}
	}
	return align(rows, 0, 2, 3, 4, 5)
}

// columns are the rates that ports and queue pairs both have; a dash is one
// that is not counted, or not known yet.
func columns(all, moved stats.Counters, seconds float64, port bool) []string {
	s := moved.Summarize()
	var list []string
	add := func(n uint64, names ...string) {
		if moved == nil || seconds <= 0 || !all.Known(names...) {
			list = append(list, "-")
		} else {
			list = append(list, number(float64(n)/seconds))
		}
	}
	add(s.SentBytes, "sent_bytes")
	add(s.ReceivedBytes, "rcvd_bytes")
	if port {
		add(s.SharedSentBytes, "shm_sent_bytes")
		add(s.SharedReceivedBytes, "shm_rcvd_bytes")
	}
	add(s.SentPackets, "sent_pkts")
	add(s.ReceivedPackets, "rcvd_pkts")
	add(s.Messages, "rdma_sends", "rdma_recvs", "rdma_writes", "rdma_reads")
	add(s.Retransmitted, "retransmitted_pkts", "completer_retry_err")
	add(s.Timeouts, "retransmit_timeouts")
	add(s.NAKsSent+s.NAKsReceived, "nak_seq_sent", "nak_seq_rcvd", "rcvd_seq_err")
	add(s.RNRSent+s.RNRReceived, "send_rnr_err", "rcvd_rnr_err")
	if port {
		add(s.Drops, "drop_qpn", "drop_icrc")
	}
	return list
}

// causes lists the faults by cause, the most frequent first: drops, NAKs by
// kind and direction, injected faults.
func causes(moved stats.Counters, seconds float64) string {
	if seconds <= 0 {
		return ""
	}
	names := slices.Collect(maps.Keys(moved))
	names = slices.DeleteFunc(names, func(n string) bool {
		if moved[n] == 0 || n == "drop_send" || n == "rcvd_seq_err" && moved.Known("nak_seq_rcvd") {
			return true
		}
		family := stats.Lookup(n).Family
		return family != "drops" && family != "naks_sent" && family != "naks_received" && family != "faults"
	})
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(moved[b], moved[a]), cmp.Compare(a, b)) })
	for i, n := range names {
		names[i] = n + " " + number(float64(moved[n])/seconds)
	}
	return strings.Join(names, ", ")
}

func requester(r *stats.Requester) []string {
	if r == nil {
		return []string{"-", "-", "-", "-"}
	}
	list := []string{strconv.Itoa(r.Outstanding), "-", "-", "-"}
	if r.Window > 0 {
		list[1], list[2] = number(float64(r.InFlight)), number(float64(r.Window))
	}
	if r.RTT > 0 {
		list[3] = duration(r.RTT)
	}
	return list
}

// peer is where a queue pair sends to, and the number of the queue pair there.
func peer(q *stats.QueuePair) string {
	switch {
	case q.RemoteQPN == 0:
		return "-"
	case !q.Peer.IsValid():
		return fmt.Sprintf("?/%d", q.RemoteQPN)
	}
	return fmt.Sprintf("%v/%d", q.Peer.Addr(), q.RemoteQPN)
}

func pid(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// number writes with at most three digits that count, and decimal units.
func number(v float64) string {
	if v <= 0 {
		return "0"
	}
	unit := ""
	for _, u := range []string{"k", "M", "G", "T", "P"} {
		if v < 999.5 {
			break
		}
		v, unit = v/1000, u
	}
	switch {
	case v < 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64) + unit
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + unit
	}
}

func duration(d time.Duration) string {
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%.1fµs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0fµs", float64(d)/1e3)
	}
	return fmt.Sprintf("%.1fms", float64(d)/1e6)
}

// align puts rows of one length into columns two apart: those whose numbers are
// given to the left, the others to the right.
func align(rows [][]string, left ...int) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b bytes.Buffer
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if slices.Contains(left, i) {
				b.WriteString(cell + pad)
			} else {
				b.WriteString(pad + cell)
			}
		}
		lines[n] = b.String()
	}
	return lines
}
