// Command franz drives a broker through franz-go, a client that shares no code with Java's or librdkafka.
//
//	franz roundtrip BOOTSTRAP TOPIC CODEC    produce and consume records with headers under one compression
//	franz transactions BOOTSTRAP TOPIC ID    commit, abort, commit; then read back what is committed
//	franz copy BOOTSTRAP FROM TO GROUP ID    consume, transform and produce exactly once until FROM is read
//	franz member BOOTSTRAP FROM TO GROUP ID  the same until it is killed; says "committed" after every transaction
//	franz secure BOOTSTRAP TOPIC CA MECHANISM USER SECRET  a round trip over SASL_SSL; the secret is a password or a token
//	franz version BOOTSTRAP                  guess the broker's version as kcl does: one of 4.x
//
// It prints "ok" and exits 0, or says what was wrong and exits 1.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const records = 200

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(ctx context.Context, command string, args []string) error {
	switch command {
	case "roundtrip":
		return roundtrip(ctx, args[0], args[1], args[2])
	case "transactions":
		return transactions(ctx, args[0], args[1], args[2])
	case "copy":
		return copyExactlyOnce(ctx, args[0], args[1], args[2], args[3], args[4])
	case "version":
		return version(ctx, args[0])
	case "secure":
		options, err := secured(args[2], args[3], args[4], args[5])
		if err != nil {
			return err
		}
		return roundtrip(ctx, args[0], args[1], "none", options...)
	case "member":
		return member(ctx, args[0], args[1], args[2], args[3], args[4])
	}
	return fmt.Errorf("unknown command %q", command)
}

func version(ctx context.Context, bootstrap string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	answer, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, client)
	if err != nil {
		return err
	}
	guess := kversion.FromApiVersionsResponse(answer).VersionGuess()
	if !strings.HasPrefix(guess, "v4.") {
		return fmt.Errorf("taken for %s", guess)
	}
	return nil
}

func codec(name string) kgo.CompressionCodec {
	return map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[name]
}

func secured(ca, mechanism, user, secret string) ([]kgo.Opt, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in " + ca)
	}
	var how sasl.Mechanism
	switch mechanism {
	case "PLAIN":
		how = plain.Auth{User: user, Pass: secret}.AsMechanism()
	case "SCRAM-SHA-256":
		how = scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		how = scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()
	case "OAUTHBEARER":
		how = oauth.Auth{Token: secret}.AsMechanism()
	default:
		return nil, errors.New("unknown mechanism " + mechanism)
	}
	return []kgo.Opt{kgo.DialTLSConfig(&tls.Config{RootCAs: roots}), kgo.SASL(how), kgo.AllowAutoTopicCreation()}, nil
}

func roundtrip(ctx context.Context, bootstrap, topic, compression string, more ...kgo.Opt) error {
	options := append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic), kgo.ConsumeTopics(topic),
		kgo.ProducerBatchCompression(codec(compression)),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, more...)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range records {
		client.Produce(ctx, &kgo.Record{
			Key: []byte(fmt.Sprint(i)), Value: []byte(fmt.Sprintf("value-%d", i)),
			Headers: []kgo.RecordHeader{{Key: "n", Value: []byte(fmt.Sprint(i))}},
		}, nil)
	}
	if err := client.Flush(ctx); err != nil {
		return err
	}
	seen := map[string]int{}
	for len(seen) < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			if string(record.Headers[0].Value) != string(record.Key) {
				return fmt.Errorf("header %q of key %q", record.Headers[0].Value, record.Key)
			}
			seen[string(record.Key)]++
		}
	}
	return once(seen)
}

func transactions(ctx context.Context, bootstrap, topic, id string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic), kgo.TransactionalID(id),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for round, outcome := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		for i := range records {
			key := fmt.Sprintf("%d-%d", round, i)
			client.Produce(ctx, &kgo.Record{Key: []byte(key), Value: []byte("x")}, nil)
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, outcome); err != nil {
			return fmt.Errorf("ending round %d: %w", round, err)
		}
	}
	return readCommitted(ctx, bootstrap, topic, 2*records, func(key string) bool { return key[0] != '1' })
}

func readCommitted(ctx context.Context, bootstrap, topic string, want int, legal func(string) bool) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	seen := map[string]int{}
	for len(seen) < want {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			return fmt.Errorf("after %d of %d: %w", len(seen), want, err)
		}
		for _, record := range fetches.Records() {
			if !legal(string(record.Key)) {
				return fmt.Errorf("an aborted record was seen: %q", record.Key)
			}
			seen[string(record.Key)]++
		}
	}
	return once(seen)
}

func transactSession(bootstrap, from, to, group, id string, more ...kgo.Opt) (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(append([]kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(id), kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(from), kgo.DefaultProduceTopic(to), kgo.RequireStableFetchOffsets(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}, more...)...)
}

// copyInTransaction says how many records it has copied: none if a rebalance came in between.
func copyInTransaction(ctx context.Context, session *kgo.GroupTransactSession) (int, error) {
	fetches := session.PollFetches(ctx)
	var notJoined *kgo.ErrGroupSession
	if err := fetches.Err0(); errors.As(err, &notJoined) {
		// A member of the newer protocol came while this one was joining: brokers say
		// REBALANCE_IN_PROGRESS then, and franz-go tells us so and joins again.
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	if err := session.Begin(); err != nil {
		return 0, err
	}
	batch := fetches.Records()
	for _, record := range batch {
		session.Produce(ctx, &kgo.Record{Key: record.Key, Value: record.Value}, nil)
	}
	committed, err := session.End(ctx, kgo.TryCommit)
	if err != nil || !committed {
		return 0, err
	}
	return len(batch), nil
}

func copyExactlyOnce(ctx context.Context, bootstrap, from, to, group, id string) error {
	session, err := transactSession(bootstrap, from, to, group, id)
	if err != nil {
		return err
	}
	defer session.Close()
	for copied := 0; copied < records; {
		more, err := copyInTransaction(ctx, session)
		if err != nil {
			return err
		}
		copied += more
	}
	return readCommitted(ctx, bootstrap, to, records, func(string) bool { return true })
}

func member(ctx context.Context, bootstrap, from, to, group, id string) error {
	session, err := transactSession(bootstrap, from, to, group, id,
		kgo.SessionTimeout(3*time.Second), kgo.HeartbeatInterval(300*time.Millisecond))
	if err != nil {
		return err
	}
	defer session.Close()
	for {
		copied, err := copyInTransaction(ctx, session)
		if err != nil {
			return err
		}
		if copied > 0 {
			fmt.Println("committed")
		}
	}
}

func once(seen map[string]int) error {
	for key, times := range seen {
		if times != 1 {
			return errors.New(fmt.Sprintf("key %q was seen %d times", key, times))
		}
	}
	return nil
}
