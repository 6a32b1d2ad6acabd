package uapitest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/uapitest"
)

func TestCleanListenTestsPass(t *testing.T) {
	t.Parallel()
	require.Empty(t, new(fakeT).run(func(t uapitest.T) {
		d, l := uapitest.Listen(t, "")
		uapitest.Dial(t, d, l)
	}))
}

func TestMistakesOfDialFail(t *testing.T) {
	t.Parallel()
	errs := new(fakeT).run(func(t uapitest.T) {
		d, l := uapitest.Listen(t, "")
		uapitest.DialWith(t, d, l, uapi.QPConfig{SendDepth: -1}, 64)
	})
	require.Len(t, errs, 1)
	require.Contains(t, errs[0], "-1 sends")
	errs = new(fakeT).run(func(t uapitest.T) {
		d, l := uapitest.Listen(t, "")
		_, other := uapitest.Listen(t, "")
		uapitest.Dial(t, d, other) // on a network of its own
		_ = l
	})
	require.Len(t, errs, 1)
}
