package explain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/rnic/wire"
)

// answers writes what was found as "kind number".
func answers(question string) (list []string) {
	for _, e := range Find(question) {
		list = append(list, string(e.Kind)+" "+e.Name)
	}
	return list
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		question string
		want     []string
	}{
		{"RETRY_EXC_ERR", []string{"status RETRY_EXC_ERR"}},
		{"IBV_WC_RETRY_EXC_ERR", []string{"status RETRY_EXC_ERR"}},
		{"ib_wc_retry_exc_err", []string{"status RETRY_EXC_ERR"}},
		{"uapi.WCRetryExcErr", []string{"status RETRY_EXC_ERR"}},
		{"transport retry counter exceeded", []string{"status RETRY_EXC_ERR"}},
		{"  status \t 12 ", []string{"status RETRY_EXC_ERR"}},
		{"12", []string{"status RETRY_EXC_ERR", "errno ENOMEM", "opcode RC RDMA_READ_REQUEST", "syndrome ACK credits 12",
			"timer RNR timer 12", "timeout ACK timeout 12", "reject INVALID_GID"}},
		{"EMSGSIZE", []string{"errno EMSGSIZE"}},
		{"syscall.EMSGSIZE", []string{"errno EMSGSIZE"}},
		{"message too long", []string{"errno EMSGSIZE"}},
		{"-90", []string{"errno EMSGSIZE"}},
		{"errno 90", []string{"errno EMSGSIZE"}},
		{"ENOTSUP", []string{"errno EOPNOTSUPP"}},
		{"RC RDMA_WRITE_FIRST", []string{"opcode RC RDMA_WRITE_FIRST"}},
		{"rdma-write-first", []string{"opcode RC RDMA_WRITE_FIRST"}},
		{"opcode 0x06", []string{"opcode RC RDMA_WRITE_FIRST"}},
		{"UC SEND_ONLY", []string{"opcode UC SEND_ONLY"}},
		{"CNP", []string{"opcode CNP"}},
		{"0x60", []string{"syndrome NAK PSN sequence error"}},
		{"PSN sequence error", []string{"syndrome NAK PSN sequence error"}},
		{"NAK PSN sequence error", []string{"syndrome NAK PSN sequence error"}},
		{"remote access error", []string{"status REM_ACCESS_ERR", "syndrome NAK remote access error"}},
		{"ACK", []string{"syndrome ACK"}},
		{"RNR 12", []string{"syndrome RNR NAK timer 12 (0.64ms)", "timer RNR timer 12"}},
		{"min_rnr_timer 12", []string{"timer RNR timer 12"}},
		{"0.64ms", []string{"timer RNR timer 12"}},
		{"timeout 14", []string{"timeout ACK timeout 14"}},
		{"reject 28", []string{"reject CONSUMER_DEFINED"}},
		{"REJ stale connection", []string{"reject STALE_CONN"}},
		{"RDMA_CM_EVENT_UNREACHABLE", []string{"cm UNREACHABLE"}},
		{"unreachable", []string{"cm UNREACHABLE"}},
		{"cm 8", []string{"cm REJECTED"}},
		{"IBV_EVENT_QP_FATAL", []string{"event QP_FATAL"}},
		{"event 18", []string{"event GID_CHANGE"}},
		{"wc 12", []string{"status RETRY_EXC_ERR"}},
		{"wc 0x0c", []string{"status RETRY_EXC_ERR"}},
		{"NAK", []string{"syndrome NAK PSN sequence error", "syndrome NAK invalid request", "syndrome NAK remote access error",
			"syndrome NAK remote operational error", "syndrome NAK invalid RD request"}},
		{"syndrome nak", answers("NAK")},
		{"REM_INV", []string{"status REM_INV_REQ_ERR", "status REM_INV_RD_REQ_ERR"}},
		{"PSN sequence", []string{"syndrome NAK PSN sequence error"}},
		{"errno 99999", nil},
		{"status 99999", nil},
		{"RETRY_EX", nil},
		{"-12345678901234567890", nil},
		{"frobnicate", nil},
		{"_", nil},
		{"", nil},
		{"0x", nil},
		{"status EINVAL", nil},
	} {
		require.Equal(t, c.want, answers(c.question), c.question)
	}
	require.Len(t, Find("timer"), 32)
	require.Len(t, Find("RNR"), 32)
	require.Len(t, Find("wc"), 22)
	require.Len(t, Find("RNR NAK"), 32)
	require.Greater(t, len(Find("opcode RC")), 20)
}

func TestNearest(t *testing.T) {
	require.Equal(t, []string{"RETRY_EXC_ERR"}, Nearest("RETRY_EXEC", 1))
	require.Equal(t, []string{"EMSGSIZE"}, Nearest("EMSGSIZ", 1))
	require.Contains(t, Nearest("WRITE_FIRST", 9), "UC RDMA_WRITE_FIRST")
	require.Contains(t, Nearest("opcode SEND_ONLI", 9), "RC SEND_ONLY")
	require.Len(t, Nearest("NAK", 3), 3)
	require.Empty(t, Nearest("status EMSGSIZ", 3), "which is an errno")
	require.Empty(t, Nearest("status 9999", 3))
	require.Empty(t, Nearest("x", 3))
	require.Empty(t, Nearest("completely other things", 3))
	require.Empty(t, Nearest(strings.Repeat("RETRY_EXC_ERR", 1000), 3))
}

// TestEntriesAreWhole: nothing is explained by halves, and nothing is left out.
func TestEntriesAreWhole(t *testing.T) {
	for _, k := range Kinds {
		require.NotEmpty(t, k.Title())
		last := -1
		for _, e := range All(k) {
			require.Equal(t, k, e.Kind)
			require.Greater(t, e.Number, last, e.Name)
			last = e.Number
			require.NotEmpty(t, e.Name)
			require.NotEmpty(t, e.Means, e.Name)
			require.NotNil(t, e.Also, e.Name)
			require.NotNil(t, e.Causes, e.Name)
			require.NotNil(t, e.Look, e.Name)
			require.NotContains(t, e.Means, "\n")
			if k == Status || k == Errno {
				require.NotEmpty(t, e.Causes, e.Name)
				require.NotEmpty(t, e.Look, e.Name)
			}
			// Each name leads back to its entry.
			for _, name := range e.names() {
				found := false
				if k == Fault {
					name = "fault " + name
				}
				for _, f := range Find(name) {
					found = found || f.Kind == k && f.Number == e.Number
				}
				require.True(t, found, "%s %s", k, name)
			}
		}
	}
	require.Equal(t, "WCStatus(22)", abi.WCStatus(len(All(Status))).String(), "every status that the kernel has")
	require.Equal(t, "EventType(20)", abi.EventType(len(All(Event))).String())
	require.Equal(t, "UCMEvent(16)", abi.UCMEvent(len(All(CMEvent))).String())
	known := 0
	for n := range 256 {
		if wire.Opcode(n).Known() {
			known++
		}
	}
	require.Len(t, All(Opcode), known)
	for op := wire.OpSend; op <= wire.OpCongestion; op++ {
		require.NotEmpty(t, factOf(Opcode, op.String()).means, op)
	}
}

// TestFacts: each entry of facts.txt is of something that can be asked.
func TestFacts(t *testing.T) {
	operations := map[string]bool{}
	for op := wire.OpSend; op <= wire.OpCongestion; op++ {
		operations[op.String()] = true
	}
	seen := map[string]bool{}
	for _, f := range facts() {
		require.Contains(t, Kinds, f.kind)
		require.False(t, seen[string(f.kind)+f.name], "twice: %s", f.name)
		seen[string(f.kind)+f.name] = true
		if f.kind == Opcode {
			require.True(t, operations[f.name], f.name)
			continue
		}
		require.NotEmpty(t, Find(string(f.kind)+" "+f.name), f.name)
	}
	require.Greater(t, len(seen), 120)
}

// FuzzFind gives any words: answers or none.
func FuzzFind(f *testing.F) {
	for _, s := range []string{"RETRY_EXC_ERR", "status 12", "0x06", "-22", "NAK", "timer", "Ünïcode İ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, question string) {
		for _, e := range Find(question) {
			require.NotEmpty(t, e.Name)
		}
		require.LessOrEqual(t, len(Nearest(question, 4)), 4)
	})
}

func TestApart(t *testing.T) {
	for pair, want := range map[[2]string]int{
		{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"kitten", "sitting"}: 3, {"flaw", "lawn"}: 2,
		{"rnr", "rnr_retry"}: 1, {"rnr_retry", "rnr"}: 6,
	} {
		require.Equal(t, want, apart(pair[0], pair[1]), "%q", pair)
	}
}
