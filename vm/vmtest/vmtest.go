package vmtest

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/vm"
)

// prepared is what one process builds once.
var prepared = sync.OnceValues(func() (*vm.Image, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := vm.Check(""); err != nil {
		return nil, err
	}
	kernel, err := vm.FindKernel(ctx, "", "", func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	return vm.CachedImage(ctx, vm.ImageConfig{Kernel: kernel})
})

// Config returns a configuration that boots a guest here, or skips the test
// and says why. Limits are generous: other tests run at the same time.
func Config(t testing.TB) vm.Config {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	if testing.Short() {
		t.Skip("boots a guest, which -short leaves out")
	}
	image, err := prepared()
	var missing *vm.MissingError
	switch {
	case errors.As(err, &missing) && !ci:
		t.Skip("no guest can be booted here: ", err)
	case err != nil:
		t.Fatal("no guest can be booted here: ", err)
	}
	return vm.Config{
		Image:       image.File,
		Timeout:     5 * time.Minute,
		BootTimeout: 5 * time.Minute,
		Log:         t.Logf,
	}
}

// Tests runs the tests of packages in one guest and reports each as a subtest,
// skips as skips. The guest's commands find CI as it is here.
func Tests(t *testing.T, c vm.TestConfig) {
	t.Helper()
	var output bytes.Buffer
	c.Output, c.Verbose, c.Race = &output, true, Race
	c.Env = append(c.Env, "CI="+os.Getenv("CI"))
	report, err := vm.Test(t.Context(), c)
	for _, p := range report.Packages {
		for _, test := range p.Tests {
			t.Run(test.Name, func(t *testing.T) {
				switch test.Outcome {
				case "SKIP":
					t.Skip("in the guest: " + strings.TrimSpace(test.Output))
				case "FAIL":
					t.Errorf("in the guest:\n%s", test.Output)
				}
			})
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, output.String())
	}
}
