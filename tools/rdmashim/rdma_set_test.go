package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestRDMASet: what the words ask of the kernel.
func TestRDMASet(t *testing.T) {
	for _, c := range []struct{ line, did string }{
		{"dev set rxe0 name fast", "rename 0 fast"},
		{"dev set rxe0 n fast", "rename 0 fast"},
		{"dev set rxe0 netns blue", "move 0"},
		{"dev set rxe0 adaptive-moderation on", "dim 0 1"},
		{"dev set rxe0 adaptive-moderation off", "dim 0 0"},
		{"system set netns exclusive", "setnetns 0"},
		{"sys set privileged-qkey on", "qkey 1"},
		{"system set priv off", "qkey 0"},
		{"statistic qp set link rxe0/1 auto type on", "statset 0/1 mode=1 mask=1"},
		{"statistic qp set link rxe0/1 auto pid,type on", "statset 0/1 mode=1 mask=3"},
		{"stat qp set link rxe0/1 auto off", "statset 0/1 mode=1 mask=0"},
		{"statistic qp bind link rxe0/1 lqpn 17", "statset 0/1 mode=2 lqpn=17"},
		{"statistic qp bind link rxe0/1 lqpn 17 cntn 4", "statset 0/1 mode=2 lqpn=17 counter=4"},
		{"statistic qp unbind link rxe0/1 cntn 4 lqpn 17", "statdel 0/1 mode=2 lqpn=17 counter=4"},
		{"statistic qp unbind link rxe0/1 cntn 4", "statdel 0/1 mode=2 lqpn=17 counter=4; statdel 0/1 mode=2 lqpn=18 counter=4"},
		{"statistic set link rxe0/1 optional-counters cc_tx,cc_rx", "statset 0/1 optional=7,6"},
		{"statistic unset link rxe0/1 optional-counters", "statset 0/1 optional="},
	} {
		k := counterKernel()
		stdout, stderr, err := runRDMA(t, k, c.line)
		require.NoError(t, err, c.line)
		require.Empty(t, stdout+stderr)
		require.Equal(t, c.did, strings.Join(k.Did, "; "), c.line)
	}
}

// counterKernel has a link with a driver that counts by queue pair.
func counterKernel() *netlinktest.Kernel {
	k := busyKernel()
	k.Exclusive = true
	k.Spaces = map[string][]netlinkmgr.NetDev{"blue": nil}
	o := &k.Links[0].Objects
	o.Mask = 1
	o.SRQs = []netlinkmgr.SRQ{{SRQN: 3, QPs: [][2]uint32{{17, 17}, {20, 25}}, PDN: ptr(uint32(2)), Owner: netlinkmgr.Owner{PID: 321}}}
	o.QPCounters = []netlinkmgr.QPCounter{{Port: ptr(uint32(1)), ID: 4, Type: ptr(netlinkmgr.QPType(2)), Owner: netlinkmgr.Owner{PID: 321}, QPs: []uint32{17, 18}, Counters: []netlinkmgr.Counter{{Name: "rx", Value: 5}}}}
	o.Optional = []netlinkmgr.OptionalCounter{{Name: "cc_rx", Index: 6, On: true}, {Name: "cc_tx", Index: 7}}
	o.MRCounters = []netlinkmgr.Counter{{Name: "page_faults", Value: 3}}
	return k
}

func TestStatisticOutput(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"statistic qp mode", "link rxe0/1 mode qp auto type on \n"},
		{"stat qp m link rxe0 -j", `[{"ifindex":0,"ifname":"rxe0","port":1,"mode":"qp auto type on"}]` + "\n"},
		{"statistic qp", "link rxe0/1 cntn 4 qp-type RC pid 321 comm worker rx 5 \n    LQPN: <17,18>\n"},
		{"statistic qp show link rxe0/1 lqpn 18 -j", `[{"ifindex":0,"ifname":"rxe0","port":1,"cntn":4,"qp-type":"RC","pid":321,"comm":"worker","rx":5,"lqpn":[17,18]}]` + "\n"},
		{"statistic qp show lqpn 19 -j", "[]\n"},
		{"statistic qp show cntn 1-3 -j", "[]\n"},
		{"statistic qp list qp-type rc -p", "link rxe0/1 cntn 4 qp-type RC pid 321 comm worker \n    rx 5 \n    LQPN: <17,18>\n"},
		{"statistic mode", "link rxe0/1 optional-counters cc_rx\n"},
		{"statistic mode supported", "link rxe0/1 supported optional-counters cc_rx,cc_tx\n"},
		{"statistic mode supported link rxe0/1 -j", `[{"ifname":"rxe0","port":1,"supported optional-counters":["cc_rx","cc_tx"]}]` + "\n"},
		{"resource show srq", "dev rxe0 srqn 3 type BASIC lqpn 17,20-25 pdn 2 pid 321 comm worker \n"},
		{"res show srq -j type basic srqn 3", `[{"ifindex":0,"ifname":"rxe0","srqn":3,"type":"BASIC","lqpn":["17","20-25"],"pdn":2,"pid":321,"comm":"worker"}]` + "\n"},
		{"res show srq srqn 4 -j", "[]\n"},
		{"statistic mr", "dev rxe0 mrn 1 page_faults 3 \n"},
		{"statistic show mr -j", `[{"ifindex":0,"ifname":"rxe0","mrn":1,"page_faults":3}]` + "\n"},
		{"statistic mr show link rxe0 mrn 2 -j", "[]\n"},
	} {
		stdout, stderr, err := runRDMA(t, counterKernel(), c.line)
		require.NoError(t, err, c.line)
		require.Empty(t, stderr)
		require.Equal(t, c.want, stdout, c.line)
	}
	documented := documentedJSON(t)
	for line, section := range map[string]string{"stat qp -j": "statistic qp show", "stat qp mode -j": "statistic qp mode", "stat mode -j": "statistic mode", "stat mode supp -j": "statistic mode", "stat mr -j": "statistic mr", "res show srq -j": "resource show KIND"} {
		stdout, _, err := runRDMA(t, counterKernel(), line)
		require.NoError(t, err)
		require.Contains(t, documented, section)
		documented[section].holdsText(t, line, stdout)
	}
}

func TestRDMASetUsage(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"dev set", "device's name"},
		{"dev set rxe0", "what to set"},
		{"dev set rxe0 color red", `"color"`},
		{"dev set rxe0 name", "new name"},
		{"dev set rxe0 name a b", `"b"`},
		{"dev set rxe0 adaptive-moderation maybe", "neither on nor off"},
		{"system set color", "neither netns nor privileged-qkey"},
		{"system set privileged-qkey", "on or off"},
		{"system set netns shared now", `"now"`},
		{"statistic qp frob", "show, list, mode, set, bind, unbind"},
		{"statistic qp set", "word link"},
		{"statistic qp set link rxe0/1 auto", "criteria"},
		{"statistic qp set link rxe0/1 auto color on", "type, pid"},
		{"statistic qp set link rxe0/1 auto type", "word on"},
		{"statistic qp set link rxe0 auto off", "names no port"},
		{"statistic qp set link rxe0/7 auto off", "no port 7"},
		{"statistic qp bind link rxe0/1", "lqpn"},
		{"statistic qp bind link rxe0/1 lqpn x", "no number"},
		{"statistic qp bind link rxe0/1 lqpn 1 lqpn 2", "cntn"},
		{"statistic qp unbind link rxe0/1 lqpn 1", "cntn"},
		{"statistic set link rxe0/1 optional-counters", "counters' names"},
		{"statistic unset link rxe0/1 optional-counters a", `"a"`},
		{"statistic mode rxe0", "link"},
		{"statistic mr frob", "show, list, link"},
	} {
		k := counterKernel()
		stdout, _, err := runRDMA(t, k, c.line)
		var usage *usageError
		require.ErrorAs(t, err, &usage, c.line)
		require.Contains(t, err.Error(), c.says, c.line)
		require.Empty(t, stdout)
		require.Empty(t, k.Did)
	}
}

// TestRDMARefused: the kernel's refusals say what to do.
func TestRDMARefused(t *testing.T) {
	refuse := func(op string, err error) func(*netlinktest.Kernel) {
		return func(k *netlinktest.Kernel) { k.Refuse[op] = err }
	}
	for _, c := range []struct {
		line string
		make func(*netlinktest.Kernel)
		says string
	}{
		{"dev set rxe0 netns blue", func(k *netlinktest.Kernel) { k.Exclusive = false }, "'rdmashim system set netns exclusive' first"},
		{"dev set rxe0 netns blue", refuse("move", syscall.EOPNOTSUPP), "this kernel cannot move rxe links"},
		{"dev set rxe0 netns red", nil, `no network namespace is named "red" (there are: blue)`},
		{"dev set rxe9 netns blue", nil, `no RDMA device "rxe9"`},
		{"dev set rxe0 name rxe0", nil, "another device has that name"},
		{"dev set rxe0 name a%d", nil, "cannot be the name of a device"},
		{"dev set rxe0 name x", refuse("rename", syscall.EPERM), "CAP_NET_ADMIN"},
		{"system set privileged-qkey on", refuse("qkey", syscall.EINVAL), "Linux 6.7"},
		{"dev set rxe0 adaptive-moderation on", refuse("dim", syscall.EOPNOTSUPP), "the device has none"},
		{"statistic qp bind link rxe0/1 lqpn 3", refuse("statset", syscall.EOPNOTSUPP), "rdma_rxe has none"},
		{"statistic set link rxe0/1 optional-counters nope", nil, "no such optional counter"},
		{"statistic qp unbind link rxe0/1 cntn 5", nil, "rxe0/1 has no counter 5"},
	} {
		k := counterKernel()
		if c.make != nil {
			c.make(k)
		}
		stdout, _, err := runRDMA(t, k, c.line)
		require.ErrorContains(t, err, c.says)
		require.Empty(t, stdout)
	}
}

// TestHelpAtEachLevel: help is printed, and nothing is asked of the kernel.
func TestHelpAtEachLevel(t *testing.T) {
	for _, line := range []string{
		"link help", "link show help", "link add help", "link delete help", "link apply help", "dev help", "dev set help", "resource help", "resource show help",
		"system help", "system set help", "system show help", "statistic help", "statistic show help", "statistic qp help", "statistic qp set help",
		"statistic qp bind help", "statistic mode help", "statistic set help", "statistic mr help", "monitor help",
	} {
		stdout, stderr, err := runRDMA(t, nil, line)
		require.NoError(t, err, line)
		require.Contains(t, stdout, "Usage:", line)
		require.Empty(t, stderr)
	}
}

// runBatch runs a batch file's text.
func runBatch(t *testing.T, k *netlinktest.Kernel, text string, flags ...string) (stdout, stderr string, err error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "batch")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	root := &cobra.Command{Use: "rdma", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return nil }}
	batchFlags(root, func() (*netlinkmgr.Manager, error) { return k.Manager(), nil })
	var out, errs bytes.Buffer
	root.SetArgs(append(flags, "-b", path))
	root.SetOut(&out)
	root.SetErr(&errs)
	err = root.ExecuteContext(t.Context())
	return out.String(), strings.ReplaceAll(errs.String(), path, "FILE"), err
}

func TestBatch(t *testing.T) {
	k := busyKernel()
	stdout, stderr, err := runBatch(t, k, `# two commands
d set rxe0 name 'fast'   # a comment

link \
  show fast
`, "-j")
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.Equal(t, `[{"ifindex":0,"ifname":"fast","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth0","netdev_index":2}]`+"\n", stdout)

	const three = "dev set fast name a\nlink show nosuch\ndev set a name b\n"
	_, _, err = runBatch(t, k, three)
	require.ErrorIs(t, err, syscall.ENODEV)
	require.ErrorContains(t, err, ":2: no RDMA device")
	require.Equal(t, "a", k.Links[0].Name, "the first command is done, the third is not")

	_, stderr, err = runBatch(t, k, "dev set a name fast\n"+strings.Join(strings.Split(three, "\n")[1:], "\n"), "-f")
	require.ErrorContains(t, err, "2 of 3 commands failed")
	require.Contains(t, stderr, "rdma: FILE:2: no RDMA device")
	require.Contains(t, stderr, "rdma: FILE:3: ")

	// A file that cannot be read as one changes nothing.
	k.Did = nil
	for text, says := range map[string]string{
		"dev set fast name x\nlink show \"a\n":    "line 2: the quote",
		"dev set fast name x\nlink show \\":       "line 2: nothing follows",
		"dev set fast name x\nlink show 'a":       "line 2: the quote",
		strings.Repeat("a ", maxBatchLine) + "\n": "too long",
	} {
		_, _, err = runBatch(t, k, text)
		require.ErrorContains(t, err, says)
		require.Empty(t, k.Did)
	}
	var usage *usageError
	for _, text := range []string{"frob\n", "link frob\n", "''\n", "help\n", "link show --frob\n"} {
		_, _, err = runBatch(t, k, text)
		require.ErrorAs(t, err, &usage, text)
	}
	_, _, err = runBatch(t, k, "frob\n", "-j", "-d")
	require.ErrorContains(t, err, `:1: "frob" is none of link, dev`, "the options are not what is wrong")
	_, _, err = runBatch(t, k, "")
	require.NoError(t, err)
}

// FuzzBatch reads any file: command lines, or one line that says what is wrong.
func FuzzBatch(f *testing.F) {
	f.Add([]byte("# comment\nlink show \\\n rxe0\nd set rxe0 name 'a b'\n"))
	f.Add([]byte("link \"add\" a\\\n"))
	f.Add([]byte("'\n\\\n\\\n#\\\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseBatch(bytes.NewReader(text))
		if err != nil {
			require.NotEmpty(t, oneLine(err))
			return
		}
		at := 0
		for _, l := range list {
			require.Greater(t, l.number, at)
			require.NotEmpty(t, l.words)
			at = l.number
			rdmaArgs(l.words, true)
		}
	})
}
