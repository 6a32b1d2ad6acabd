package rdma

import (
	"bytes"
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// runRDMA runs a command line on a kernel, as rdmashim does.
func runRDMA(t *testing.T, k interface{ Manager() *netlinkmgr.Manager }, line string) (string, string, error) {
	t.Helper()
	root := cli.NewRoot("rdmashim", Commands(func() (*netlinkmgr.Manager, error) { return k.Manager(), nil })...)
	var stdout, stderr bytes.Buffer
	root.SetArgs(Args(strings.Fields(line), false))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// TestRDMAOutput holds text and JSON to the form of iproute2's rdma 6.1.
func TestRDMAOutput(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"link show", "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"},
		{"link", "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"},
		{"link list rxe0/1", "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"},
		{"-d link show rxe0", "link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0 netdev_index 2 \n    caps: <CM, DEVICE_MGMT, BOOT_MGMT>\n"},
		{"link show -j", `[{"ifindex":0,"ifname":"rxe0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth0","netdev_index":2}]` + "\n"},
		{"-jd link", `[{"ifindex":0,"ifname":"rxe0","port":1,"state":"ACTIVE","physical_state":"LINK_UP","netdev":"eth0","netdev_index":2,"caps":["CM","DEVICE_MGMT","BOOT_MGMT"]}]` + "\n"},
		{"-j -p -d link", "[ {\n        \"ifindex\": 0,\n        \"ifname\": \"rxe0\",\n        \"port\": 1,\n        \"state\": \"ACTIVE\",\n        \"physical_state\": \"LINK_UP\",\n        \"netdev\": \"eth0\",\n        \"netdev_index\": 2,\n        \"caps\": [ \"CM\",\"DEVICE_MGMT\",\"BOOT_MGMT\" ]\n    } ]\n"},
		{"dev show", "0: rxe0: node_type ca node_guid 5054:00ff:fe12:3456 sys_image_guid 5054:00ff:fe12:3456 \n"},
		{"dev show -j rxe0", `[{"ifindex":0,"ifname":"rxe0","node_type":"ca","node_guid":"5054:00ff:fe12:3456","sys_image_guid":"5054:00ff:fe12:3456"}]` + "\n"},
		{"dev -d", "0: rxe0: node_type ca protocol roce node_guid 5054:00ff:fe12:3456 sys_image_guid 5054:00ff:fe12:3456 adaptive-moderation off \n    caps: <BAD_PKEY_CNTR, BAD_QKEY_CNTR, AUTO_PATH_MIG, CHANGE_PHY_PORT, UD_AV_PORT_ENFORCE_PORT_ENFORCE, PORT_ACTIVE_EVENT, SYS_IMAGE_GUID, RC_RNR_NAK_GEN, SRQ_RESIZE, MEM_WINDOW, MEM_MGT_EXTENSIONS, MEM_WINDOW_TYPE_2B>\n"},
		{"resource", "0: rxe0: pd 1 cq 1 qp 2 cm_id 1 mr 1 ctx 1 srq 0 \n"},
		{"-j res show rxe0", `[{"ifindex":0,"ifname":"rxe0","pd":1,"cq":1,"qp":2,"cm_id":1,"mr":1,"ctx":1,"srq":0}]` + "\n"},
		{"resource show qp", "link rxe0/- lqpn 1 type GSI state RTS sq-psn 0 comm [ib_core] \nlink rxe0/1 lqpn 17 rqpn 18 type RC state RTS rq-psn 5 sq-psn 6 path-mig-state MIGRATED pdn 2 pid 321 comm worker \n"},
		{"resource show qp -j link rxe0/1", `[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":17,"rqpn":18,"type":"RC","state":"RTS","rq-psn":5,"sq-psn":6,"path-mig-state":"MIGRATED","pdn":2,"pid":321,"comm":"worker"}]` + "\n"},
		{"resource show qp link rxe0/- -j", `[{"ifindex":0,"ifname":"rxe0","lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"ib_core"}]` + "\n"},
		{"resource show cq link rxe0", "dev rxe0 cqn 3 cqe 255 users 2 ctxn 4 pid 321 comm worker \n"},
		{"resource show mr dev rxe0", "dev rxe0 mrn 1 rkey 0x1f2 lkey 0x1f2 mrlen 4096 pdn 2 pid 321 comm worker \n"},
		{"-j resource show mr", `[{"ifindex":0,"ifname":"rxe0","mrn":1,"rkey":"1f2","lkey":"1f2","mrlen":4096,"pdn":2,"pid":321,"comm":"worker"}]` + "\n"},
		{"resource show pd", "dev rxe0 pdn 2 local_dma_lkey 0x0 users 3 ctxn 4 pid 321 comm worker \n"},
		{"resource show ctx", "dev rxe0 ctxn 4 pid 321 comm worker \n"},
		{"resource show cm_id", "link rxe0/1 cm-idn 9 lqpn 17 qp-type RC state CONNECT ps TCP pid 321 comm worker src-addr 10.0.2.15:7000 dst-addr fd00::2:18515 \n"},
		{"statistic show", "link rxe0/1 sent_pkts 12 rcvd_pkts 34 \n"},
		{"stat -p", "link rxe0/1 \n    sent_pkts 12 \n    rcvd_pkts 34 \n"},
		{"-j stat show link rxe0/1", `[{"ifname":"rxe0","port":1,"sent_pkts":12,"rcvd_pkts":34}]` + "\n"},
		{"system show", "netns shared copy-on-fork on\n"},
		{"sys show netns -j", `[{"netns":"shared","copy-on-fork":true}]` + "\n"},
		// Filters.
		{"resource show qp lqpn 17-20,3 -j state rts", `[{"ifindex":0,"ifname":"rxe0","port":1,"lqpn":17,"rqpn":18,"type":"RC","state":"RTS","rq-psn":5,"sq-psn":6,"path-mig-state":"MIGRATED","pdn":2,"pid":321,"comm":"worker"}]` + "\n"},
		{"resource show qp pid 1-320 -j", "[]\n"},
		{"resource show qp pid 1 -j -p", "[ ]\n"},
		{"resource show qp type gsi,ud -j", `[{"ifindex":0,"ifname":"rxe0","lqpn":1,"type":"GSI","state":"RTS","sq-psn":0,"comm":"ib_core"}]` + "\n"},
		{"resource show cm_id src-port 1-6999", ""},
		{"resource show cm_id dst-addr fd00::2 dst-port 18515 -j", `[{"ifindex":0,"ifname":"rxe0","port":1,"cm-idn":9,"lqpn":17,"qp-type":"RC","state":"CONNECT","ps":"TCP","pid":321,"comm":"worker","src-addr":"10.0.2.15:7000","dst-addr":"fd00::2:18515"}]` + "\n"},
	} {
		t.Run(c.line, func(t *testing.T) {
			stdout, stderr, err := runRDMA(t, netlinktest.Busy(), c.line)
			require.NoError(t, err)
			require.Empty(t, stderr)
			require.Equal(t, c.want, stdout)
			if strings.Contains(c.line, "-j") {
				require.True(t, json.Valid([]byte(stdout)), stdout)
			}
		})
	}
}

// TestRDMAUsage: wrong words are usage errors, and nothing is printed or done.
func TestRDMAUsage(t *testing.T) {
	for _, c := range []struct{ line, says string }{
		{"link frob", `"frob"`},
		{"link show rxe0/x", "ports count from 1"},
		{"link show rxe0/0", "ports count from 1"},
		{"link show rxe0/2", "no port 2"},
		{"link show rxe0/-", "names none"},
		{"link show /1", "names no device"},
		{"link show rxe0 rxe1", `"rxe1"`},
		{"link add", "NAME is missing"},
		{"link add a", "word type"},
		{"link add a kind rxe netdev eth0", `"kind"`},
		{"link add a type", "type (rxe) is missing"},
		{"link add a type rxe netdev", "network device's name"},
		{"link add a type rxe netdev eth0 more", `"more"`},
		{"link delete", "NAME is missing"},
		{"link up a b", "at most one"},
		{"link up --timeout -1s", "negative"},
		{"link show --frob", "--frob"},
		{"dev show a b", `"b"`},
		{"resource show frob", "qp, cm_id, cq"},
		{"resource show qp lqpn", "value of lqpn"},
		{"resource show qp frob 1", "rqpn"},
		{"resource show qp lqpn seventeen", "17 or 1,4-7"},
		{"resource show qp link rxe0/9", "no port 9"},
		{"statistic show rxe0", "link"},
		{"statistic show link", "DEV/PORT"},
		{"system show frob", "privileged-qkey"},
		{"system set", "netns"},
		{"system set netns never", "exclusive"},
		{"dev set", "device's name"},
		{"dev set rxe0", "word name"},
		{"dev set rxe0 colour blue", `"colour"`},
		{"dev set rxe0 netns", "NAME or a PID"},
		{"system set privileged-qkey maybe", "neither on nor off"},
		{"dev set rxe0 name", "new name"},
		{"dev set rxe0 name a b", `"b"`},
		{"system set color", "word netns"},
		{"system set netns", "shared or exclusive"},
		{"system set netns shared now", `"now"`},
		{"statistic qp", `"qp"`},
		{"statistic show link rxe0/7", "no port 7"},
		{"link up eth0 --mtu 100", "--mtu 100 is not between 336 and 65536"},
	} {
		t.Run(c.line, func(t *testing.T) {
			k := netlinktest.Busy()
			stdout, _, err := runRDMA(t, k, c.line)
			require.ErrorAs(t, err, new(*cli.UsageError))
			require.Contains(t, err.Error(), c.says)
			require.Empty(t, stdout)
			require.Empty(t, k.Did)
		})
	}
}

func TestLinkAddDelete(t *testing.T) {
	k := netlinktest.New()
	k.LoadRXE()
	stdout, stderr, err := runRDMA(t, k, "link add rxe7 type rxe netdev eth0")
	require.NoError(t, err)
	require.Empty(t, stdout+stderr)
	require.Equal(t, "rxe7", k.Links[0].Name)

	_, _, err = runRDMA(t, k, "link add rxe7 type rxe netdev docker0")
	require.ErrorIs(t, err, syscall.EEXIST)
	require.ErrorAs(t, err, new(*netlinkmgr.NameTakenError))
	_, _, err = runRDMA(t, k, "link add rxe8 type rxe netdev eth0")
	var has *netlinkmgr.NetDevHasLinkError
	require.ErrorAs(t, err, &has)
	_, _, err = runRDMA(t, k, "link add rxe7 type rxe netdev eth0")
	require.EqualError(t, err, "eth0 has the rxe link rxe7 already: use it, or remove it with 'rdmashim link delete rxe7'")
	_, _, err = runRDMA(t, k, "link add rxe8 type siw netdev eth0")
	require.ErrorContains(t, err, `no link type "siw"`)
	_, _, err = runRDMA(t, k, "link add rxe8 type rxe netdev eth9")
	require.ErrorAs(t, err, new(*netlinkmgr.NetDevGoneError))

	_, _, err = runRDMA(t, k, "link del rxe7")
	require.NoError(t, err)
	require.Empty(t, k.Links)
	_, _, err = runRDMA(t, k, "link del rxe7")
	require.ErrorIs(t, err, syscall.ENODEV)

	delete(k.Modules, "rdma_rxe")
	_, _, err = runRDMA(t, k, "link add rxe0 type rxe netdev eth0")
	require.ErrorContains(t, err, "rdmashim link up eth0")
}

func TestLinkUp(t *testing.T) {
	k := netlinktest.New()
	stdout, stderr, err := runRDMA(t, k, "link up --dry-run")
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.Empty(t, k.Did)
	require.Equal(t, 7, strings.Count(stdout, "\n"), "six modules, one link: %s", stdout)
	require.Contains(t, stdout, "\nadd link rxe0 on eth0\n")

	stdout, stderr, err = runRDMA(t, k, "link up eth0 --name fast")
	require.NoError(t, err)
	require.Equal(t, "link fast/1 state ACTIVE netdev eth0 gid_index 1 gid ::ffff:10.0.2.15 gid_type RoCE v2 uverbs /dev/infiniband/uverbs0 \n", stdout)
	require.Contains(t, stderr, "load module rdma_rxe")
	require.Contains(t, stderr, "eth0 was named")

	stdout, _, err = runRDMA(t, k, "link up -j")
	require.NoError(t, err)
	var got []struct {
		Ifname  string   `json:"ifname"`
		Index   int      `json:"gid_index"`
		GID     string   `json:"gid"`
		Created bool     `json:"created"`
		Steps   []string `json:"steps"`
		Reasons []string `json:"reasons"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &got), stdout)
	require.Equal(t, "fast", got[0].Ifname)
	require.Equal(t, 1, got[0].Index)
	require.False(t, got[0].Created)
	require.Empty(t, got[0].Steps)
	require.Len(t, got[0].Reasons, 2)

	stdout, stderr, err = runRDMA(t, k, "link up -d")
	require.NoError(t, err)
	require.Empty(t, stderr)
	require.Contains(t, stdout, "\n    GID index 1 (10.0.2.15): RoCE v2 over IPv4: first in the order\n")
}

func TestLinkGID(t *testing.T) {
	k := netlinktest.Busy()
	stdout, _, err := runRDMA(t, k, "link gid rxe0")
	require.NoError(t, err)
	require.Equal(t, strings.TrimPrefix(`
BEST  LINK    INDEX  GID                      TYPE     NETDEV  REASON
-     rxe0/1  0      fe80::5054:ff:fe12:3456  RoCE v2  eth0    index 1 goes before: link-local reaches this link only
best  rxe0/1  1      ::ffff:10.0.2.15         RoCE v2  eth0    RoCE v2 over IPv4: first in the order
`, "\n"), stdout)
	stdout, _, err = runRDMA(t, k, "link gid -j")
	require.NoError(t, err)
	require.Contains(t, stdout, `{"ifname":"rxe0","port":1,"index":1,"gid":"::ffff:10.0.2.15","address":"10.0.2.15","type":"RoCE v2","netdev":"eth0","scope":"IPv4","usable":true,"best":true,"reason":"RoCE v2 over IPv4: first in the order"}`)
	_, _, err = runRDMA(t, k, "link gid nope")
	require.ErrorIs(t, err, syscall.ENODEV)
}

func TestRDMAArgs(t *testing.T) {
	for _, c := range []struct {
		in    string
		short bool
		want  string
	}{
		{"-j link show", false, "link -j show"},
		{"-jp -d --json res sh qp", false, "resource -jp -d --json show qp"},
		{"link del a", false, "link delete a"},
		{"link -d s", false, "link -d show"},
		{"re", false, "re"},
		{"r", true, "resource"},
		{"s s", true, "system show"},
		{"st l", true, "statistic list"},
		{"d", true, "dev"},
		{"demo -j", false, "demo -j"},
		{"devices -j", false, "devices -j"},
		{"server", false, "server"},
		{"-j", false, "-j"},
		{"-x link", false, "-x link"},
		{"", false, ""},
	} {
		require.Equal(t, c.want, strings.Join(Args(strings.Fields(c.in), c.short), " "), c.in)
	}
}

// TestLikeRecordedIproute2: from the same answers of a real kernel, what
// iproute2's rdma 6.1 printed, byte for byte.
func TestLikeRecordedIproute2(t *testing.T) {
	r, err := netlinktest.Recorded()
	require.NoError(t, err)
	require.Greater(t, len(r.Calls), 10)
	for _, c := range r.Calls {
		t.Run(c.Args, func(t *testing.T) {
			got, _, err := runRDMA(t, r, "-j "+c.Args)
			require.NoError(t, err)
			if c.Args == "-d dev show" {
				got = strings.Replace(got, `"protocol":"roce",`, "", 1) // which iproute2 6.11 learnt
			}
			require.Equal(t, c.Output, got)
		})
	}
}
