import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Drives a broker through the Java client, the one that speaks transaction version 2.
 *
 *   roundtrip BOOTSTRAP TOPIC CODEC          records with headers under one compression
 *   transactions BOOTSTRAP TOPIC ID          commit, abort, commit; then read what is committed
 *   fencing BOOTSTRAP TOPIC ID               a second producer with the same id fences the first
 *   copy BOOTSTRAP FROM TO GROUP ID PROTOCOL consume, transform, produce exactly once (classic | consumer)
 *   member BOOTSTRAP FROM TO GROUP ID PROTOCOL the same, until it is killed; says "committed" after every transaction
 *
 * Prints "ok" and exits 0, or says what was wrong and exits 1.
 */
public class Clients {
    static final int RECORDS = 200;
    static final Duration PATIENCE = Duration.ofSeconds(60);

    public static void main(String[] args) {
        try {
            switch (args[0]) {
                case "roundtrip" -> roundtrip(args[1], args[2], args[3]);
                case "transactions" -> transactions(args[1], args[2], args[3]);
                case "fencing" -> fencing(args[1], args[2], args[3]);
                case "copy" -> copy(args[1], args[2], args[3], args[4], args[5], args[6]);
                case "member" -> member(args[1], args[2], args[3], args[4], args[5], args[6]);
                default -> throw new IllegalArgumentException(args[0]);
            }
            System.out.println("ok");
            System.exit(0);
        } catch (Throwable wrong) {
            System.out.println("failed: " + wrong);
            wrong.printStackTrace(System.out);
            System.exit(1);
        }
    }

    static KafkaProducer<String, String> producer(String bootstrap, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.putAll(more);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static KafkaConsumer<String, String> consumer(String bootstrap, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    static void roundtrip(String bootstrap, String topic, String codec) throws Exception {
        try (var producer = producer(bootstrap, Map.of("compression.type", codec))) {
            for (int i = 0; i < RECORDS; i++) {
                var record = new ProducerRecord<>(topic, String.valueOf(i), "value-" + i);
                record.headers().add("n", String.valueOf(i).getBytes());
                producer.send(record);
            }
        }
        for (var record : readAll(bootstrap, topic, RECORDS)) {
            String header = new String(record.headers().lastHeader("n").value());
            if (!header.equals(record.key())) throw new IllegalStateException("header " + header + " of " + record.key());
        }
    }

    static void transactions(String bootstrap, String topic, String id) throws Exception {
        try (var producer = producer(bootstrap, Map.of("transactional.id", id))) {
            producer.initTransactions();
            for (int round = 0; round < 3; round++) {
                producer.beginTransaction();
                for (int i = 0; i < RECORDS; i++) producer.send(new ProducerRecord<>(topic, round + "-" + i, "x"));
                if (round == 1) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        for (var record : readAll(bootstrap, topic, 2 * RECORDS))
            if (record.key().startsWith("1")) throw new IllegalStateException("an aborted record was seen: " + record.key());
    }

    static void fencing(String bootstrap, String topic, String id) throws Exception {
        try (var old = producer(bootstrap, Map.of("transactional.id", id));
                var young = producer(bootstrap, Map.of("transactional.id", id))) {
            old.initTransactions();
            old.beginTransaction();
            old.send(new ProducerRecord<>(topic, "old", "x")).get();
            young.initTransactions();
            young.beginTransaction();
            young.send(new ProducerRecord<>(topic, "young", "x")).get();
            try {
                old.commitTransaction();
                throw new IllegalStateException("the older producer was not fenced");
            } catch (ProducerFencedException | org.apache.kafka.common.errors.InvalidProducerEpochException expected) {
                young.commitTransaction();
            }
        }
        for (var record : readAll(bootstrap, topic, 1))
            if (!record.key().equals("young")) throw new IllegalStateException("a fenced record was seen");
    }

    static void copy(String bootstrap, String from, String to, String group, String id, String protocol) throws Exception {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        try (var consumer = consumer(bootstrap, Map.of("group.id", group, "group.protocol", protocol));
                var producer = producer(bootstrap, Map.of("transactional.id", id))) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            for (int copied = 0; copied < RECORDS; ) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("only " + copied + " copied");
                ConsumerRecords<String, String> batch = consumer.poll(Duration.ofMillis(200));
                if (batch.isEmpty()) continue;
                copyInTransaction(batch, to, consumer, producer);
                copied += batch.count();
            }
        }
        readAll(bootstrap, to, RECORDS);
    }

    static void copyInTransaction(
            ConsumerRecords<String, String> batch, String to, KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        for (var record : batch) {
            producer.send(new ProducerRecord<>(to, record.key(), record.value()));
            next.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
        producer.commitTransaction();
    }

    static void member(String bootstrap, String from, String to, String group, String id, String protocol) {
        Map<String, String> settings = new HashMap<>(Map.of("group.id", group, "group.protocol", protocol, "max.poll.records", "50"));
        if (protocol.equals("classic")) settings.putAll(Map.of("session.timeout.ms", "3000", "heartbeat.interval.ms", "300"));
        try (var consumer = consumer(bootstrap, settings); var producer = producer(bootstrap, Map.of("transactional.id", id))) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            while (true) {
                ConsumerRecords<String, String> batch = consumer.poll(Duration.ofMillis(200));
                if (batch.isEmpty()) continue;
                try {
                    copyInTransaction(batch, to, consumer, producer);
                    System.out.println("committed");
                } catch (CommitFailedException rebalanced) {
                    producer.abortTransaction();
                    rewind(consumer);
                }
            }
        }
    }

    /** Back to what the group has committed: the aborted transaction's records come again. */
    static void rewind(KafkaConsumer<String, String> consumer) {
        var committed = consumer.committed(consumer.assignment());
        for (var partition : consumer.assignment()) {
            if (committed.get(partition) == null) consumer.seekToBeginning(List.of(partition));
            else consumer.seek(partition, committed.get(partition));
        }
    }

    /** Reads `count` records and then listens a little longer: one more, or one twice, is an error. */
    static List<ConsumerRecord<String, String>> readAll(String bootstrap, String topic, int count) {
        Map<String, ConsumerRecord<String, String>> seen = new HashMap<>();
        try (var consumer = consumer(bootstrap, Map.of())) {
            var partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long deadline = System.nanoTime() + PATIENCE.toNanos();
            int extra = 0;
            while (seen.size() < count || extra++ < 3) {
                if (System.nanoTime() > deadline) throw new IllegalStateException("only " + seen.size() + " of " + count + " read");
                for (var record : consumer.poll(Duration.ofMillis(200)))
                    if (seen.put(record.key(), record) != null) throw new IllegalStateException(record.key() + " was seen twice");
            }
        }
        if (seen.size() != count) throw new IllegalStateException(seen.size() + " records instead of " + count);
        return List.copyOf(seen.values());
    }
}
