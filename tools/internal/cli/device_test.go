package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/refuse"
)

// TestFaultRules: rules of packets go into the device's name, and those of
// calls into the environment, from a file and from programs' devices, too.
func TestFaultRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	require.NoError(t, os.WriteFile(file, []byte("# both & more\ndup op=ACK\ncall=REG_MR errno=ENOMEM\n"), 0o600))
	const drop, fails, both = "drop op=ACK nth=3", "call=REG_MR errno=ENOMEM", "dup op=ACK"
	for name, c := range map[string]struct {
		args                []string
		device, want, calls string
	}{
		"nothing":         {nil, "soft", "soft", ""},
		"packets":         {[]string{"--fault", drop}, "soft", "soft?fault=" + drop, ""},
		"calls":           {[]string{"--fault", fails}, "soft", "soft", fails},
		"twice":           {[]string{"--fault", drop, "--fault", fails + ";" + both}, "soft", "soft?fault=" + drop + ";" + both, fails},
		"a file":          {[]string{"--fault", "@" + file}, "soft", "soft?fault=" + both, fails},
		"name":            {nil, "soft:127.0.0.5?fault=" + fails + "&mtu=256", "soft:127.0.0.5?mtu=256", fails},
		"name and a file": {[]string{"--loss", "1%"}, "soft?fault=@" + file, "soft?fault=" + both + "&loss=1%", fails},
		"name and flag":   {[]string{"--fault", fails}, "soft?fault=" + fails, "soft", fails + ";" + fails},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(refuse.EnvFault, "")
			var f DeviceFlags
			cmd := &cobra.Command{}
			f.AddFaults(cmd)
			require.NoError(t, cmd.Flags().Parse(c.args))
			name, err := f.forProgram(c.device)
			require.NoError(t, err)
			require.Equal(t, c.want, name)
			require.Equal(t, c.calls, os.Getenv(refuse.EnvFault))
			require.Equal(t, len(c.args) > 0, f.Given(cmd) != "")
		})
	}
	for _, rules := range []string{"call=REG_MR", "@" + file + "x"} {
		_, err := new(DeviceFlags).forProgram("soft?fault=" + rules)
		require.ErrorAs(t, err, new(*UsageError))
	}
}
