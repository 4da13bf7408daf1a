"""Settings of Apache Kafka 4.3.1's brokers that mean nothing here: which may be set, and which not.

Kafka changes some while it runs. Those that only tune it (threads, buffers, Kerberos) are taken,
kept and told again, and change nothing. Those that would limit or protect somebody, or are secrets,
are not: nobody shall believe in a limit that is not there.
"""

from __future__ import annotations

from semel.broker.settings.definitions import CLUSTER_WIDE, PER_BROKER, Setting, SettingType, Table

_TUNING = """
    background.threads INT
    config.providers LIST
    follower.fetch.last.tiered.offset.enable BOOLEAN
    follower.replication.throttled.rate LONG
    group.coordinator.cached.buffer.max.bytes INT
    group.share.assignment.interval.ms INT
    group.streams.assignment.interval.ms INT
    leader.replication.throttled.rate LONG
    log.cleaner.dedupe.buffer.size LONG
    log.cleaner.io.buffer.load.factor DOUBLE
    log.cleaner.io.buffer.size INT
    log.cleaner.io.max.bytes.per.second DOUBLE
    log.cleaner.threads INT
    metric.reporters LIST
    num.io.threads INT
    num.network.threads INT
    num.recovery.threads.per.data.dir INT
    num.replica.fetchers INT
    remote.fetch.max.wait.ms INT
    remote.list.offsets.request.timeout.ms LONG
    remote.log.index.file.cache.total.size.bytes LONG
    remote.log.manager.copier.thread.pool.size INT
    remote.log.manager.copy.max.bytes.per.second LONG
    remote.log.manager.expiration.thread.pool.size INT
    remote.log.manager.fetch.max.bytes.per.second LONG
    remote.log.manager.follower.thread.pool.size INT
    remote.log.reader.threads INT
    replica.alter.log.dirs.io.max.bytes.per.second LONG
    share.coordinator.cached.buffer.max.bytes INT
"""
_TUNING_OF_ONE_BROKER = """
    sasl.kerberos.kinit.cmd STRING
    sasl.kerberos.min.time.before.relogin LONG
    sasl.kerberos.principal.to.local.rules LIST
    sasl.kerberos.service.name STRING
    sasl.kerberos.ticket.renew.jitter DOUBLE
    sasl.kerberos.ticket.renew.window.factor DOUBLE
    sasl.login.refresh.buffer.seconds SHORT
    sasl.login.refresh.min.period.seconds SHORT
    sasl.login.refresh.window.factor DOUBLE
    sasl.login.refresh.window.jitter DOUBLE
    sasl.mechanism.inter.broker.protocol STRING
    ssl.endpoint.identification.algorithm STRING
    ssl.keymanager.algorithm STRING
    ssl.protocol STRING
    ssl.provider STRING
    ssl.secure.random.implementation STRING
    ssl.trustmanager.algorithm STRING
"""


def _ignored(rows: str, update: str) -> list[Setting]:
    doc = "A setting of Apache Kafka's that changes nothing here."
    named = (row.split() for row in rows.strip().splitlines())
    return [Setting(name, SettingType[kind], None, doc, update=update) for name, kind in named]


#: What a running broker takes and keeps.
IGNORED = Table(_ignored(_TUNING, CLUSTER_WIDE) + _ignored(_TUNING_OF_ONE_BROKER, PER_BROKER))

_TAKEN_BY_KAFKA_ALONE = """
    cordoned.log.dirs max.connection.creation.rate
    max.connections.per.ip.overrides principal.builder.class
    ssl.engine.factory.class
    ssl.keystore.password
    ssl.truststore.password
"""
_TAKEN_AT_START = """
    alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds
    auto.leader.rebalance.enable broker.heartbeat.interval.ms broker.session.timeout.ms
    client.quota.callback.class
    controlled.shutdown.enable controller.listener.names
    controller.quorum.append.linger.ms controller.quorum.auto.join.enable
    controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
    controller.quorum.voters
    controller.socket.timeout.ms create.topic.policy.class.name
    delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms
    delegation.token.max.lifetime.ms delegation.token.secret.key
    delete.records.purgatory.purge.interval.requests early.start.listeners
    fetch.purgatory.purge.interval.requests group.coordinator.append.linger.ms
    group.coordinator.background.threads group.coordinator.threads group.share.assignors
    group.share.delivery.count.limit group.share.heartbeat.interval.ms
    group.share.max.assignment.interval.ms group.share.max.delivery.count.limit
    group.share.max.heartbeat.interval.ms group.share.max.partition.max.record.locks
    group.share.max.record.lock.duration.ms group.share.max.session.timeout.ms
    group.share.max.share.sessions group.share.max.size group.share.min.assignment.interval.ms
    group.share.min.delivery.count.limit group.share.min.heartbeat.interval.ms
    group.share.min.partition.max.record.locks group.share.min.record.lock.duration.ms
    group.share.min.session.timeout.ms group.share.partition.max.record.locks
    group.share.record.lock.duration.ms group.share.session.timeout.ms
    group.streams.heartbeat.interval.ms group.streams.initial.rebalance.delay.ms
    group.streams.max.assignment.interval.ms group.streams.max.heartbeat.interval.ms
    group.streams.max.session.timeout.ms group.streams.max.size
    group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
    group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
    group.streams.num.standby.replicas group.streams.session.timeout.ms
    initial.broker.registration.timeout.ms inter.broker.listener.name
    kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.imbalance.check.interval.seconds log.dir.failure.timeout.ms log.dirs
    log.flush.offset.checkpoint.interval.ms log.flush.start.offset.checkpoint.interval.ms
    metadata.log.dir metadata.log.max.record.bytes.between.snapshots
    metadata.log.max.snapshot.interval.ms metadata.log.segment.bytes metadata.log.segment.ms
    metadata.max.idle.interval.ms metadata.max.retention.bytes metadata.max.retention.ms
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    num.replica.alter.log.dirs.threads offsets.commit.timeout.ms offsets.load.buffer.size
    offsets.topic.compression.codec producer.purgatory.purge.interval.requests
    remote.log.manager.copy.quota.window.num remote.log.manager.copy.quota.window.size.seconds
    remote.log.manager.fetch.quota.window.num remote.log.manager.fetch.quota.window.size.seconds
    remote.log.manager.task.interval.ms remote.log.manager.thread.pool.size
    remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
    remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
    remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks
    remote.log.storage.manager.class.name remote.log.storage.manager.class.path
    remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
    replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes
    replica.fetch.response.max.bytes replica.fetch.wait.max.ms
    replica.high.watermark.checkpoint.interval.ms replica.lag.time.max.ms replica.selector.class
    replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
    replication.quota.window.size.seconds sasl.client.callback.handler.class
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms
    sasl.login.read.timeout.ms sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
    sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
    sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
    sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
    sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
    sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    sasl.oauthbearer.scope
    sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class
    security.inter.broker.protocol security.providers
    share.coordinator.append.linger.ms share.coordinator.load.buffer.size
    share.coordinator.snapshot.update.records.per.snapshot
    share.coordinator.state.topic.compression.codec share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.num.partitions
    share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
    share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests socket.connection.setup.timeout.max.ms
    socket.connection.setup.timeout.ms ssl.allow.dn.changes ssl.allow.san.changes
    telemetry.max.bytes
"""

#: What does not change while a broker runs: in Kafka, or only here.
FIXED = frozenset((_TAKEN_BY_KAFKA_ALONE + _TAKEN_AT_START).split())
