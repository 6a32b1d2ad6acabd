package rdma

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestRDMASet: the requests to the kernel that the words stand for.
func TestRDMASet(t *testing.T) {
	for _, c := range []struct{ line, did string }{
		{"dev set rxe0 name fast", "rename 0 fast"},
		{"dev set rxe0 n fast", "rename 0 fast"},
		{"system set netns exclusive", "setnetns 0"},
		{"sys set n shared", "setnetns 1"},
		{"system set privileged-qkey on", "setqkey 1"},
		{"sys set priv off", "setqkey 0"},
		{"dev set rxe0 netns /proc/self/ns/net", "move 0"},
		{"dev set rxe0 netn " + strconv.Itoa(os.Getpid()), "move 0"},
	} {
		k := netlinktest.Busy()
		stdout, stderr, err := runRDMA(t, k, c.line)
		require.NoError(t, err, c.line)
		require.Empty(t, stdout+stderr)
		require.Equal(t, c.did, strings.Join(k.Did, "; "), c.line)
	}
}

func TestSharedReceiveQueues(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"resource show srq", "dev rxe0 srqn 3 type BASIC lqpn 17,20-25 pdn 2 pid 321 comm worker \n"},
		{"res show srq -j type basic srqn 3", `[{"ifindex":0,"ifname":"rxe0","srqn":3,"type":"BASIC","lqpn":["17","20-25"],"pdn":2,"pid":321,"comm":"worker"}]` + "\n"},
		{"res show srq srqn 4 -j", "[]\n"},
	} {
		k := netlinktest.Busy()
		k.Links[0].Objects.SRQs = []netlinkmgr.SRQ{{SRQN: 3, QPs: []netlinkmgr.SRQQP{{QPN: new(uint32(17))}, {Min: 20, Max: 25}}, PDN: new(uint32(2)), Owner: netlinkmgr.Owner{PID: 321}}}
		stdout, stderr, err := runRDMA(t, k, c.line)
		require.NoError(t, err, c.line)
		require.Empty(t, stderr)
		require.Equal(t, c.want, stdout, c.line)
	}
}

// TestRDMARefused: the kernel's refusals say what to do.
func TestRDMARefused(t *testing.T) {
	for _, c := range []struct {
		line, refuse string
		err          error
		says         string
	}{
		{"dev set rxe9 name x", "", nil, `no RDMA device "rxe9"`},
		{"dev set rxe0 name rxe0", "", nil, "another device has that name"},
		{"dev set rxe0 name a%d", "", nil, "cannot be the name of a device"},
		{"dev set rxe0 name x", "rename", syscall.EPERM, "CAP_NET_ADMIN"},
		{"system set netns exclusive", "setnetns", syscall.EBUSY, "other network namespaces"},
		{"system set privileged-qkey on", "setqkey", syscall.EINVAL, "not before Linux 6.7"},
		{"dev set rxe0 netns no-such-one", "", nil, "/run/netns/no-such-one"},
		{"dev set rxe0 netns /proc/self/ns/net", "move", syscall.EOPNOTSUPP, "cannot move its devices"},
		{"dev set rxe9 netns /proc/self/ns/net", "", nil, `no RDMA device "rxe9"`},
		{"link up eth0 --mtu 1400", "setmtu", syscall.EPERM, "set the MTU of eth0 to 1400: no permission"},
		{"link up eth0 --mtu 9001", "", nil, "ip -d link show eth0"},
	} {
		k := netlinktest.Busy()
		k.Refuse[c.refuse] = c.err
		stdout, _, err := runRDMA(t, k, c.line)
		require.ErrorContains(t, err, c.says)
		require.Empty(t, stdout)
	}
}

// TestHelpAtEachLevel: help is printed, and nothing is asked of the kernel.
func TestHelpAtEachLevel(t *testing.T) {
	for _, line := range []string{
		"link help", "link show help", "link add help", "link delete help", "dev help", "dev set help", "resource help", "resource show help",
		"system help", "system set help", "system show help", "statistic help", "statistic show help", "monitor help",
	} {
		stdout, stderr, err := runRDMA(t, nil, line)
		require.NoError(t, err, line)
		require.Contains(t, stdout, "Usage:", line)
		require.Empty(t, stderr)
	}
}

// TestLinkUpAgain: the MTU and the name are as asked, and once more they are so
// already.
func TestLinkUpAgain(t *testing.T) {
	k := netlinktest.New()
	const line = "link up eth0 --mtu 4200 --name fast"
	stdout, _, err := runRDMA(t, k, line+" --dry-run")
	require.NoError(t, err)
	require.Contains(t, stdout, "set the MTU of eth0 to 4200 (was 1500)\n")
	require.Empty(t, k.Did)
	_, stderr, err := runRDMA(t, k, line)
	require.NoError(t, err)
	require.Contains(t, stderr, "set the MTU of eth0 to 4200 (was 1500)\n")
	require.Contains(t, k.Did, "setmtu eth0 4200")
	require.Equal(t, "fast", k.Links[0].Name)
	k.Did = nil
	_, _, err = runRDMA(t, k, line)
	require.NoError(t, err)
	require.Empty(t, k.Did)
	_, _, err = runRDMA(t, k, "link up eth0 --name other")
	require.ErrorAs(t, err, new(*netlinkmgr.NetDevHasLinkError))
}
