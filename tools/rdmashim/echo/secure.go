package echo

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
)

// The protocols that TLS agrees on: of QMux the draft without an application's
// name, as other programs for QMux call it.
const (
	defaultALPN = "rdmashim-echo"
	qmuxALPN    = "qmux-02"
)

// secure is TLS, as the flags say.
type secure struct {
	on, insecure  bool
	cert, key, ca string
	alpn, name    string

	config *tls.Config // nil: plain
}

// addFlags adds the flags of a server or a client.
func (s *secure) addFlags(cmd *cobra.Command, server bool) {
	f := cmd.Flags()
	f.BoolVar(&s.on, "tls", false, "TLS 1.3 on the byte stream; QUIC has it always")
	f.BoolVar(&s.insecure, "insecure", false, "TLS with a certificate that the server makes and no client checks")
	f.StringVar(&s.alpn, "alpn", "", "protocol that TLS must agree on (default: "+qmuxALPN+" over qmux, else "+defaultALPN+")")
	if server {
		f.StringVar(&s.cert, "cert", "", "a server's certificate, a PEM file; means --tls")
		f.StringVar(&s.key, "key", "", "its key, a PEM file")
	} else {
		f.StringVar(&s.ca, "ca", "", "who may have signed the server's certificate, a PEM file (default: the system's); means --tls")
		f.StringVar(&s.name, "server-name", "", "name that the certificate must have (default: the server's host)")
	}
}

// prepare reads the certificates of a server, or of a client of HOST:PORT.
func (s *secure) prepare(server bool, address, alpn string) (err error) {
	if !s.on && !s.insecure && s.cert == "" && s.key == "" && s.ca == "" {
		return nil
	}
	s.alpn = cmp.Or(s.alpn, alpn)
	host, _, _ := net.SplitHostPort(address)
	s.config = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{s.alpn}, ServerName: cmp.Or(s.name, host)}
	own := make([]tls.Certificate, 1)
	switch {
	case server && s.insecure && (s.cert != "" || s.key != ""):
		return cli.Usagef("--insecure makes a certificate, --cert and --key name one: choose")
	case server && s.insecure:
		own[0], err = peer.SelfSigned()
		s.config.Certificates = own
		return err
	case server && (s.cert == "" || s.key == ""):
		return cli.Usagef("TLS wants --cert and --key, or --insecure")
	case server:
		if own[0], err = tls.LoadX509KeyPair(s.cert, s.key); err != nil {
			return fmt.Errorf("--cert, --key: %w", err)
		}
		s.config.Certificates = own
	case s.insecure:
		s.config.InsecureSkipVerify = true
	case s.ca != "":
		s.config.RootCAs = x509.NewCertPool()
		pem, err := os.ReadFile(s.ca)
		if err != nil {
			return fmt.Errorf("--ca: %w", err)
		}
		if !s.config.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("--ca: %s holds no certificate in PEM", s.ca)
		}
	}
	return nil
}

// handshake brings a byte stream through TLS, if there is any.
func (s *secure) handshake(ctx context.Context, c net.Conn, server bool) (net.Conn, error) {
	if s.config == nil {
		return c, nil
	}
	side := tls.Client
	if server {
		side = tls.Server
	}
	over := side(c, s.config)
	if err := over.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("TLS: %w", err)
	}
	if over.ConnectionState().NegotiatedProtocol == "" {
		return nil, fmt.Errorf("TLS: the peer agreed on no protocol, here --alpn %s", s.alpn)
	}
	return over, nil
}
