package uapitest_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

// sends posts n messages of x, for which y has receives.
func sends(x, y *uapitest.End, n int) {
	for i := range n {
		y.Must(y.PostRecv(y.QP, y.MR, uint64(64*i), 64))
	}
	for range n {
		x.Must(x.PostSend(x.QP, x.MR, 8))
	}
}

func statuses(wcs []uapi.WC) (list []uapi.Status) {
	for _, wc := range wcs {
		list = append(list, wc.Status)
	}
	return list
}

// TestFailedCompletions: a completion fails by rule, its queue pair is in ERR,
// and what follows is flushed.
func TestFailedCompletions(t *testing.T) {
	ok, flushed := uapi.WCSuccess, uapi.WCWRFlushErr
	for rule, want := range map[string]struct{ sends, recvs []uapi.Status }{
		"wc=SEND nth=2 status=REM_OP_ERR":   {sends: []uapi.Status{ok, uapi.WCRemOpErr, flushed, flushed}},
		"wc=SEND once status=RETRY_EXC_ERR": {sends: []uapi.Status{uapi.WCRetryExcErr, flushed, flushed, flushed}},
		"wc=RECV nth=3 status=LOC_PROT_ERR": {recvs: []uapi.Status{ok, ok, uapi.WCLocProtErr, flushed}},
	} {
		t.Run(rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := uapitest.Pair(t, "fault="+rule)
				x, y := uapitest.Connect(t, a, b)
				sends(x, y, 4)
				failing := x
				if want.recvs != nil {
					failing = y
					require.Equal(t, want.recvs, statuses(y.NextUnchecked(4)))
				} else if got := statuses(x.NextUnchecked(4)); want.sends != nil {
					require.Equal(t, want.sends, got)
				}
				info := must.Get(failing.QueryQP(failing.QP))(t)
				require.Equal(t, uapi.StateError, info.State)
			})
		})
	}
}

// TestEventsByRule: an event follows a completion, and after DEVICE_FATAL calls
// are EIO but those that clean up.
func TestEventsByRule(t *testing.T) {
	for _, name := range []uapi.EventType{
		uapi.EventDeviceFatal, uapi.EventPortErr, uapi.EventPortActive, uapi.EventQPFatal, uapi.EventCQErr, uapi.EventGIDChange,
	} {
		t.Run(string(name), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := uapitest.Pair(t, "fault=wc=SEND nth=2 event="+string(name))
				x, y := uapitest.Connect(t, a, b)
				events := a.Events(t.Context())
				sends(x, y, 2)
				x.Next(2)
				e := <-events
				require.Equal(t, name, e.Type)
				if e.QP != 0 {
					require.Equal(t, x.QP, e.QP)
				}
				info, err := x.QueryQP(x.QP)
				if name == uapi.EventDeviceFatal {
					require.ErrorIs(t, err, syscall.EIO)
					_, err = a.CreateCQ(1)
					require.ErrorIs(t, err, syscall.EIO)
					_, err = y.QueryQP(y.QP)
				}
				require.NoError(t, err)
				require.Equal(t, name == uapi.EventQPFatal, info.State == uapi.StateError)
			})
		})
	}
}

// TestIdleCallRule: a rule of calls or completions that hits nothing fails its
// test.
func TestIdleCallRule(t *testing.T) {
	f := &fakeT{}
	errors := f.run(func(t uapitest.T) {
		uapitest.Pair(t, "fault=call=CREATE_AH errno=ENOMEM&fault=event=PORT_ERR after=1000")
	})
	require.Len(t, errors, 2)
	require.Contains(t, errors, `uapitest: fault_call_2 is 0: a rule of "fault=call=CREATE_AH errno=ENOMEM&fault=event=PORT_ERR after=1000" never hit anything`)
}

// recipes are those of docs/faults.md for calls, completions and events, each
// with the errno, the status or the events that the program meets.
var recipes = map[string]any{
	"call=REG_MR errno=ENOMEM nth=3":                    syscall.ENOMEM,
	"call=POST_SEND errno=EAGAIN every=10":              syscall.EAGAIN,
	"call=BIND errno=EADDRINUSE once":                   syscall.EADDRINUSE,
	"wc=SEND nth=5 status=REM_OP_ERR":                   uapi.WCRemOpErr,
	"wc=any nth=20 status=RETRY_EXC_ERR":                uapi.WCRetryExcErr,
	"event=DEVICE_FATAL after=10":                       []uapi.EventType{uapi.EventDeviceFatal},
	"event=PORT_ERR after=5; event=PORT_ACTIVE after=9": []uapi.EventType{uapi.EventPortErr, uapi.EventPortActive},
	"wc=RDMA_WRITE nth=3 event=QP_FATAL":                []uapi.EventType{uapi.EventQPFatal},
	"event=PATH_MIG after=3":                            []uapi.EventType{uapi.EventPathMig},
}

// TestJudgeRecipes: a program meets what each recipe says.
func TestJudgeRecipes(t *testing.T) {
	page := must.Get(os.ReadFile("../../docs/faults.md"))(t)
	_, text, _ := strings.Cut(string(page), "| recipe | rule |\n")
	text, _, _ = strings.Cut(text, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| .*? \\| `(.*)` \\|$").FindAllStringSubmatch(text, -1)
	require.Len(t, rows, len(recipes))
	for i, row := range rows {
		want, ok := recipes[row[1]]
		require.True(t, ok, row[1])
		t.Run(row[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				open := func(options string) *uapi.Device {
					d, err := uapi.Open(fmt.Sprintf("sim?net=recipe%d%s", i, options), uapi.OpenConfig{})
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, d.Close()) })
					return d
				}
				a, b := open("&fault="+row[1]), open("")
				events := a.Events(t.Context())
				x, y := uapitest.Connect(t, a, b)
				status, err := meets(x, y)
				switch want := want.(type) {
				case syscall.Errno:
					require.ErrorIs(t, err, want)
				case uapi.Status:
					require.NoError(t, err)
					require.Equal(t, want, status)
				case []uapi.EventType:
					for _, event := range want {
						require.Equal(t, event, (<-events).Type)
					}
				}
			})
		})
	}
}

// meets is a program at x until its first error, or status other than success.
func meets(x, y *uapitest.End) (uapi.Status, error) {
	l, err := x.Listen(":7471", uapi.ListenConfig{})
	if err != nil {
		return 0, err
	}
	defer l.Close()
	for range 2 {
		mr, err := x.RegMR(make([]byte, 64), uapi.AccessLocalWrite)
		if err != nil {
			return 0, err
		}
		defer x.DeregMR(mr) //nolint:errcheck // after DEVICE_FATAL
	}
	for i := range 24 {
		if i%2 == 0 {
			y.Must(y.PostRecv(y.QP, y.MR, 0, 64))
			_, err = x.PostSend(x.QP, x.MR, 8)
		} else {
			_, err = x.Write(x.QP, uapi.SGE{MR: x.MR, Length: 8}, x.Peer)
		}
		if err != nil {
			return 0, err
		}
		if wc := x.NextUnchecked(1)[0]; wc.Status != uapi.WCSuccess {
			return wc.Status, nil
		}
	}
	return uapi.WCSuccess, nil
}
