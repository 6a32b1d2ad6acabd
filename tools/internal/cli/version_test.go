package cli

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRelease(t *testing.T) {
	main := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: module, Version: version}}
	}
	for version, want := range map[string]string{
		"v1.2.3":                                     "1.2.3",
		"v1.2.3-rc.1":                                "1.2.3-rc.1",
		"v1.2.3+dirty":                               Next + "-dev",
		"v0.0.0-20261124101112-0123456789ab":         Next + "-dev",
		"v1.2.4-0.20261124101112-0123456789ab":       Next + "-dev",
		"v1.2.4-0.20261124101112-0123456789ab+dirty": Next + "-dev",
		"(devel)":                                    Next + "-dev",
		"":                                           Next + "-dev",
	} {
		require.Equal(t, want, release(main(version), true), version)
	}
	tool := main("v9.9.9")
	tool.Main.Path = "example.org/other"
	tool.Deps = []*debug.Module{{Path: module, Version: "v1.2.3"}}
	require.Equal(t, "1.2.3", release(tool, true), "a tool of another module")
	tool.Deps[0].Replace = &debug.Module{Path: "../rdmashim"}
	require.Equal(t, Next+"-dev", release(tool, true), "a directory")
	require.Equal(t, Next+"-dev", release(nil, false))
}
