package quicudp_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http/httptest"

	"github.com/rdmashim/rdmashim/uapi/registration"
	"github.com/rdmashim/rdmashim/uapi/registration/quicudp"
)

// A stream of real QUIC, by the calls of the other transports.
func Example() {
	web := httptest.NewTLSServer(nil) // for its certificate
	defer web.Close()
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())

	ctx := context.Background()
	r, err := registration.Open(ctx, registration.Config{
		Transport: quicudp.UDP{Addr: "127.0.0.1"},
		TLS: &tls.Config{
			Certificates: web.TLS.Certificates, // of listeners
			RootCAs:      roots,                // of dials
			ServerName:   "example.com",
			NextProtos:   []string{"greeting/1"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	l, err := r.Listen(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		c, err := l.Accept(ctx)
		if err != nil {
			log.Fatal(err)
		}
		s, err := c.AcceptStream(ctx)
		if err != nil {
			log.Fatal(err)
		}
		question, _ := io.ReadAll(s)
		fmt.Fprintf(s, "you said %s over %s", question, c.ConnectionState().Transport)
		s.Close()
	}()

	c, err := r.Dial(ctx, l.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	s, err := c.OpenStreamSync(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Fprint(s, "hello")
	s.Close()
	answer, err := io.ReadAll(s)
	fmt.Println(string(answer), err)
	// Output: you said hello over udp <nil>
}
