package deploy

import (
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers queries for the name with loopback, until the test ends. It returns its address. Resolvers only ask port 53, so it
// uses an otherwise unused loopback address.
func nameServer(t *testing.T, name string) string {
	t.Helper()
	const addr = "127.0.0.77"
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(addr), Port: 53})
	if err != nil {
		t.Skipf("NOT RUN HERE: a name server cannot listen on %s: %v", addr, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		question := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFromUDP(question)
			if err != nil {
				return
			}
			if answer, err := answerTo(question[:n], name); err == nil {
				_, _ = conn.WriteToUDP(answer, from) // the client asks again if it gets no answer
			}
		}
	}()
	return addr
}

func answerTo(question []byte, name string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	for _, q := range m.Questions {
		if q.Name.String() == name+"." && q.Type == dnsmessage.TypeA {
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 1},
				Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
			})
		}
	}
	if len(m.Answers) == 0 && len(m.Questions) > 0 && m.Questions[0].Name.String() != name+"." {
		m.RCode = dnsmessage.RCodeNameError
	}
	return m.Pack()
}
