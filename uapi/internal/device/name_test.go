package device

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/abi"
)

func TestParseDevice(t *testing.T) {
	addr := netip.MustParseAddr
	none, quiet := options{port: -1, stats: true}, options{port: -1}
	for name, want := range map[string]Spec{
		"soft":                                   {Kind: Soft, options: none},
		"soft?":                                  {Kind: Soft, options: none},
		"soft:10.0.0.1":                          {Kind: Soft, addr: addr("10.0.0.1"), options: none},
		"soft:[::1]":                             {Kind: Soft, addr: addr("::1"), options: none},
		"soft:::1":                               {Kind: Soft, addr: addr("::1"), options: none},
		"soft:[10.0.0.1]":                        {Kind: Soft, addr: addr("10.0.0.1"), options: none},
		"soft:::ffff:10.0.0.1":                   {Kind: Soft, addr: addr("10.0.0.1"), options: none},
		"soft:[fe80::1%eth0]":                    {Kind: Soft, addr: addr("fe80::1%eth0"), options: none},
		"sim":                                    {Kind: Sim, options: quiet},
		"sim?net=a b":                            {Kind: Sim, Net: "a b", options: quiet},
		"sim:10.0.0.9?net=x":                     {Kind: Sim, Net: "x", addr: addr("10.0.0.9"), options: quiet},
		"rxe0":                                   {Kind: Host, host: "rxe0", options: quiet},
		"host:rxe0":                              {Kind: Host, host: "rxe0", options: quiet},
		"soft?guid=0200:0000:0000:0001&bind=off": {Kind: Soft, options: options{port: -1, stats: true, guid: 0x0200000000000001, unbound: true}},
		"rxe0?doorbell=raw":                      {Kind: Host, host: "rxe0", options: options{port: -1, rawDoorbell: true}},
		"rxe0?doorbell=syscall":                  {Kind: Host, host: "rxe0", options: quiet},
		"host:soft":                              {Kind: Host, host: "soft", options: quiet},
		"soft?loss=1%&reorder=0.1&dup=100%&corrupt=0&delay=2ms&seed=7&port=0&mtu=1024": {Kind: Soft, options: options{
			loss: 0.01, reorder: 0.1, dup: 1, delay: 2 * time.Millisecond, seed: 7, port: 0, mtu: 1024, stats: true}},
		"sim?pcap=/tmp/a b.pcapng": {Kind: Sim, options: options{port: -1, pcap: "/tmp/a b.pcapng"}},
		"soft?buffer=212992":       {Kind: Soft, options: options{port: -1, stats: true, buffer: 212992}},
		"soft?gso=off&gro=off":     {Kind: Soft, options: options{port: -1, stats: true, noGSO: true, noGRO: true}},
		"soft?gso=on&gro=on":       {Kind: Soft, options: none},
		"sim?extensions=off":       {Kind: Sim, options: options{port: -1, noExtensions: true}},
		"soft?shm=on":              {Kind: Soft, options: none},
		"soft?shm=off":             {Kind: Soft, options: options{port: -1, stats: true, noShm: true}},
		"soft?&seed=0xff&":         {Kind: Soft, options: options{port: -1, stats: true, seed: 255}},
		"sim?stats=on":             {Kind: Sim, options: none},
		"soft?stats=off":           {Kind: Soft, options: quiet},
	} {
		got, err := Parse(name)
		require.NoError(t, err, name)
		got.text = ""
		require.Equal(t, want, got, name)
	}
}

func TestParseDeviceRefuses(t *testing.T) {
	for name, says := range map[string]string{
		"":                        "known forms",
		"?loss=1%":                "known forms",
		"host:":                   "known forms",
		"host:../../etc":          "known forms",
		"a/b":                     "known forms",
		"soft:":                   "not an IP address",
		"soft:localhost":          "host names are not looked up",
		"soft:[::1":               "closing bracket",
		"soft:[::1]:4791":         "?port=N",
		"soft:10.0.0.1:4791":      "?port=N",
		"soft:0.0.0.0":            "one interface",
		"soft:[::]":               "one interface",
		"soft:224.0.0.1":          "one interface",
		"soft?los=1%":             "soft knows loss=1% or 0.01; reorder=10%; dup=1%; corrupt=0.1%; delay=2ms; seed=7; fault=drop op=ACK nth=3, or call=CREATE_QP errno=ENOMEM, or @FILE; port=4791, 0 takes any; mtu=",
		"soft?net=x":              "unknown option",
		"sim?gateway=x":           "net=NAME",
		"rxe0?loss=1%":            "host knows fault=",
		"rxe0?doorbell=loud":      "not syscall or raw",
		"soft?loss":               "write loss=",
		"soft?loss=":              "not a share",
		"soft?loss=x":             "not a share",
		"soft?loss=NaN":           "not a share",
		"soft?loss=5":             "write 5%",
		"soft?loss=1":             "write 1% or 100%",
		"soft?reorder=1.0":        "write 1% or 100%",
		"sim?dup=1":               "write 1% or 100%",
		"soft?corrupt=1e0":        "write 1% or 100%",
		"::1":                     `did you mean "soft:[::1]"?`,
		"[::1]:7000?loss=2%":      `did you mean "soft:[::1]?port=7000&loss=2%"?`,
		"10.0.0.1:4791":           `did you mean "soft:10.0.0.1"?`,
		"SIM:x/y":                 `did you mean "sim:x/y"?`,
		"soft?loss=101%":          "outside",
		"soft?loss=-1%":           "outside",
		"soft?loss=+Inf":          "outside",
		"soft?loss=1%&loss=2%":    "twice",
		"soft?delay=2":            "write 2ms",
		"soft?delay=-2ms":         "not a duration",
		"soft?delay=1h":           "not a duration",
		"soft?seed=-1":            "64 bits",
		"soft?seed=":              "64 bits",
		"soft?port=65536":         "0 … 65535",
		"soft?port=-1":            "0 … 65535",
		"soft?mtu=1500":           "256, 512",
		"soft?gso=no":             "not on or off",
		"sim?gso=off":             "unknown option",
		"soft?buffer=208k":        "write buffer=212992",
		"soft?buffer=0":           "write buffer=212992",
		"soft?buffer=4294967296":  "write buffer=212992",
		"soft?stats=no":           "not on or off",
		"rxe0?stats=on":           "unknown option",
		"sim?net=":                "1 … 128",
		"soft?pcap=":              "not a file",
		"soft?pcap=a\x00b":        "not a file",
		"rxe0?pcap=x":             "unknown option",
		strings.Repeat("a", 2000): "longer than",
	} {
		_, err := Parse(name)
		require.ErrorIs(t, err, syscall.EINVAL, name)
		require.ErrorContains(t, err, says, name)
	}
}

// A device name that the parser accepts has options in their ranges.
func FuzzParseDevice(f *testing.F) {
	for _, seed := range []string{"soft", "soft:[::1]?loss=1%&seed=7", "sim?net=x&mtu=256", "host:rxe0", "soft?delay=2ms&port=0", "soft:1.2.3.4?dup=1e-3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		spec, err := Parse(name)
		if err != nil {
			require.ErrorIs(t, err, syscall.EINVAL)
			return
		}
		for _, v := range []float64{spec.loss, spec.reorder, spec.dup, spec.corrupt} {
			require.True(t, v >= 0 && v <= 1, "%q: share %v", name, v)
		}
		require.True(t, spec.port >= -1 && spec.port <= 65535)
		require.True(t, spec.mtu == 0 || abi.IsPathMTU(spec.mtu))
		require.True(t, spec.delay >= 0 && spec.delay <= maxFaultDelay)
		require.Equal(t, spec.Kind == Host, spec.host != "")
		if spec.Kind == Host {
			require.True(t, isKernelName(spec.host))
		}
		require.False(t, spec.addr.IsUnspecified() || spec.addr.IsMulticast())
	})
}

// A wrong name of a device is met with the name that was probably meant.
func TestMeantDevice(t *testing.T) {
	for name, want := range map[string]string{
		"Soft": "soft", "SOFT?loss=1%": "soft?loss=1%", "Soft:10.0.0.1": "soft:10.0.0.1", "Sim": "sim", "Host:rxe0": "host:rxe0",
		"soft0": "soft", "soft17?seed=7": "soft?seed=7", "sim0": "sim", "Soft0": "soft",
		"127.0.0.1": "soft:127.0.0.1", "127.0.0.1?loss=1%": "soft:127.0.0.1?loss=1%", "127.0.0.1:9": "soft:127.0.0.1?port=9",
		"fe80::1%eth0": "soft:[fe80::1%eth0]",
		"rxe0":         "", "mlx5_0": "", "soft": "", "sim": "", "softly": "", "soft-1": "", "0.0.0.0": "", "soft0:10.0.0.1": "",
	} {
		require.Equal(t, want, meant(name), name)
		if want != "" {
			_, err := Parse(want)
			require.NoError(t, err)
		}
	}
}
