package refuse

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/ruletext"
)

// TestParse: what may be written, and what an error says of the rest.
func TestParse(t *testing.T) {
	for _, text := range []string{
		"call=CREATE_QP errno=ENOMEM", "call=QP_CREATE,errno=EINVAL,nth=2", "call=EX_CREATE_CQ errno=EAGAIN every=10",
		"wc=SEND nth=5 status=REM_OP_ERR; wc=any every=3 event=QP_FATAL status=FATAL_ERR; event=DEVICE_FATAL after=10",
		"errno=EMFILE call=open once\n# a remark\n\ncall=mmap errno=EPERM; call=BIND_IP errno=EADDRINUSE",
	} {
		_, err := Parse(text)
		require.NoError(t, err, text)
	}
	for text, want := range map[string]string{
		"call=CREATE_QP":                       "it lacks call= or errno=, or wc= or status=; write call=CREATE_QP errno=ENOMEM",
		"errno=ENOMEM":                         "it lacks call=",
		"call=CREATE_PQ errno=EPERM":           `"call=CREATE_PQ": no such call; there are open, mmap`,
		"call=open errno=ENOMEMORY":            "no errno of that name",
		"call=open errno=EPERM nth=0":          "not a number from 1 on",
		"call=open errno=EPERM op=ACK":         `"op" is no word of a rule of calls`,
		"call=open errno=EPERM once=3":         `"once=3": write once`,
		"call=open errno=EPERM nth":            `"nth": write nth=3`,
		"call=open errno=EPERM nth=3 once":     `"once": a rule has one of nth=, after=, every= and once`,
		"call=open call=mmap errno=EPERM":      `"call" is given twice`,
		"wc=nth=5 status=REM_OP_ERR":           `"wc=nth=5": write wc=any nth=5, or`,
		"wc=SEND":                              "it lacks call= or errno=, or wc= or status=",
		"wc=ACK status=REM_OP_ERR":             "no such name; there are SEND, RDMA_WRITE",
		"wc=any status=SUCCESS":                "no such name; there are LOC_LEN_ERR",
		"event=SRQ_ERR":                        "no such name; there are CQ_ERR, QP_FATAL",
		"wc=any status=REM_OP_ERR errno=EPERM": "it mixes words",
		strings.Repeat("call=open errno=EPERM;", ruletext.MaxRules+1): "more than 64 rules",
		strings.Repeat("#", ruletext.MaxText+1):                       "65537 bytes of rules",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want, "%.40q", text)
	}
}

// TestEnv: the environment names a file of rules as well.
func TestEnv(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	require.NoError(t, os.WriteFile(file, []byte("call=open errno=EMFILE nth=2\n"), 0o600))
	t.Setenv(EnvFault, "@"+file)
	_, r, err := Env(nil, "")
	require.NoError(t, err)
	require.Equal(t, []syscall.Errno{0, syscall.EMFILE}, []syscall.Errno{r.answer(callOpen), r.answer(callOpen)})
	t.Setenv(EnvFault, "@"+file+"x")
	_, _, err = Env(nil, "")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, EnvFault)
}

// TestAnswer: each rule counts the calls of its name.
func TestAnswer(t *testing.T) {
	r, err := Parse("call=CREATE_QP nth=2 errno=ENOMEM; call=POST_SEND every=3 errno=EAGAIN; call=open errno=EPERM")
	require.NoError(t, err)
	answers := func(call string, n int) (got []syscall.Errno) {
		for range n {
			got = append(got, r.answer(call))
		}
		return got
	}
	require.Equal(t, []syscall.Errno{0, syscall.ENOMEM, 0}, answers("CREATE_QP", 3))
	require.Equal(t, []syscall.Errno{0, 0, syscall.EAGAIN, 0, 0, syscall.EAGAIN}, answers("POST_SEND", 6))
	require.Equal(t, []syscall.Errno{0, 0}, answers("REG_MR", 2))
	require.Equal(t, []string{"call=open errno=EPERM"}, r.Idle())
	require.Equal(t, []syscall.Errno{syscall.EPERM}, answers(callOpen, 1))
	require.Empty(t, r.Idle())
}

// TestJudge: each rule counts the completions of its kind.
func TestJudge(t *testing.T) {
	r, err := Parse("wc=SEND nth=2 status=REM_OP_ERR; event=PORT_ERR after=3; wc=RECV once event=QP_FATAL; call=open errno=EPERM")
	require.NoError(t, err)
	require.True(t, r.judges())
	for i, want := range []struct {
		op abi.WCOpcode
		kshim.Verdict
	}{
		{abi.WCSend, kshim.Verdict{}},
		{abi.WCRDMAWrite, kshim.Verdict{}},
		{abi.WCSend, kshim.Verdict{Status: abi.WCRemOpErr, Error: true, Events: []abi.EventType{abi.EventPortErr}}},
		{abi.WCRecv, kshim.Verdict{Error: true, Events: []abi.EventType{abi.EventQPFatal}}},
		{abi.WCRecv, kshim.Verdict{}},
	} {
		require.Equal(t, want.Verdict, r.judge(want.op), i)
	}
	require.Equal(t, []string{"call=open errno=EPERM"}, r.Idle())
	require.Equal(t, "fault_call_1 1\nfault_call_2 1\nfault_call_3 1\nfault_call_4 0\n", r.counters())
}

// TestGrammar: each word is understood as its own form is written, and
// docs/faults.md has the words as they are.
func TestGrammar(t *testing.T) {
	page, err := os.ReadFile("../../docs/faults.md")
	require.NoError(t, err)
	for i := range Grammar {
		w := &Grammar[i]
		value, _, _ := strings.Cut(w.form, " or ")
		require.NoError(t, w.set(&rule{}, value), w.String())
		require.Contains(t, string(page), "| `"+w.String()+"` | "+w.Text+" |\n")
	}
}

// TestNames: each entry of the schema has a name, and a call of both ways has
// one.
func TestNames(t *testing.T) {
	for _, e := range abi.Schema() {
		require.NotEmpty(t, nameOf(e))
		require.Contains(t, names(), nameOf(e))
	}
	for name, want := range map[string]string{"EX_CREATE_QP": "CREATE_QP", "QP_CREATE": "CREATE_QP", "QP_DESTROY": "DESTROY_QP", "REG_MR": "REG_MR"} {
		require.Equal(t, want, plain(name))
	}
}

// FuzzNames: no bytes of a command or of an ioctl's argument are read beyond
// their end.
func FuzzNames(f *testing.F) {
	f.Add(make([]byte, abi.CmdHdrSize))
	h := abi.IoctlHdr{ObjectID: abi.ObjectDevice, MethodID: abi.MethodInvokeWrite, NumAttrs: 1}
	a := abi.IoctlAttr{AttrID: abi.AttrWriteCmd, Data: uint64(abi.CmdAllocPD)}
	arg := make([]byte, abi.IoctlHdrSize+abi.IoctlAttrSize)
	h.Put(arg)
	a.Put(arg[abi.IoctlHdrSize:])
	f.Add(arg)
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, cm := range []bool{false, true} {
			known := append(names(), "")
			require.Contains(t, known, (&file{cm: cm}).command(b))
			require.Contains(t, known, method(b))
		}
	})
}
