package vm

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines as Linux 6.1 wrote them.
const (
	warnTrace = `[    5.100000] ------------[ cut here ]------------
[    5.100001] WARNING: CPU: 1 PID: 99 at drivers/infiniband/sw/rxe/rxe_verbs.c:1 x+0x1/0x2 [rdma_rxe]
[    5.100002] Modules linked in: rdma_rxe
[    5.100003] Call Trace:
[    5.100004] ---[ end trace 0000000000000000 ]---
[    5.200000] eth0: fine again`
	softLockup = `[   30.000000] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [swapper/0:0]`
	rcuStall   = `[   31.000000] rcu: INFO: rcu_preempt self-detected stall on CPU`
	hungTask   = `[  242.000000] INFO: task insmod:77 blocked for more than 120 seconds.`
	oops       = `[    6.000000] Oops: 0000 [#1] PREEMPT SMP NOPTI`
	nullDeref  = `[    6.000000] BUG: kernel NULL pointer dereference, address: 0000000000000010`
	panicLine  = `[    7.000000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200`
)

func TestLogJudge(t *testing.T) {
	for _, c := range []struct {
		name, log          string
		complaints, stalls int
	}{
		{"nothing", "[    0.000000] Linux version 6.1\n[    1.0] eth0: link up", 0, 0},
		{"a warning with its trace", warnTrace, 4, 0},
		{"an oops", oops, 1, 0},
		{"a bug", nullDeref, 1, 0},
		{"a panic", panicLine, 1, 0},
		{"a soft lockup is a stall", softLockup, 0, 1},
		{"an RCU stall", rcuStall, 0, 1},
		{"a hung task", hungTask, 0, 1},
		{"both", softLockup + "\n" + nullDeref, 1, 1},
		{"the same over both ways is one", nullDeref + "\n" + nullDeref, 1, 0},
		{"what programs print", "WARNING: a program's own\nBUG: so", 0, 0},
		{"what the helper logs", "[    2.000000] rdmashim: link rxe0: BUG: quoted", 0, 0},
		{"advice", "[    0.1] Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on", 0, 0},
		{"with the processor's number", "[    6.000000][    T1] BUG: unable to handle page fault", 1, 0},
		{"with a level", "<4>[    6.000000] WARNING: bad", 1, 0},
		{"within a line", "[    6.000000] list_add corruption. kernel BUG at lib/list_debug.c:29!", 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			j := &logJudge{out: &out}
			s := j.source()
			for _, chunk := range strings.SplitAfter(c.log, "e") { // lines come in pieces
				s.Write([]byte(chunk))
			}
			s.flush()
			complaints, stalls := j.verdict()
			require.Len(t, complaints, c.complaints, "%q", complaints)
			require.Len(t, stalls, c.stalls, "%q", stalls)
			require.Equal(t, strings.TrimRight(c.log, "\n")+"\n", out.String(), "the log holds every line")
		})
	}
}

func TestLogJudgeBounds(t *testing.T) {
	var out bytes.Buffer
	j := &logJudge{out: &out}
	s := j.source()
	for i := range 1000 {
		s.Write([]byte(strings.Replace(nullDeref, "10", strings.Repeat("1", i+1), 1) + "\r\n"))
		s.Write([]byte("[    6.1] more\n"))
	}
	s.Write(bytes.Repeat([]byte("x"), 3*maxLine)) // a line without end
	complaints, _ := j.verdict()
	require.LessOrEqual(t, len(complaints), maxComplaints*(complaintLines+1))
	require.LessOrEqual(t, len(s.part), maxLine+1)
	require.NotContains(t, out.String(), "\r")
}

// TestLogSourcesApart: lines of two sources are not mixed up.
func TestLogSourcesApart(t *testing.T) {
	var out bytes.Buffer
	j := &logJudge{out: &out}
	console, port := j.source(), j.source()
	console.Write([]byte("[ 1.0] from the con"))
	port.Write([]byte("[ 1.0] from the port\n"))
	console.Write([]byte("sole\n"))
	require.Equal(t, "[ 1.0] from the port\n[ 1.0] from the console\n", out.String())
}
