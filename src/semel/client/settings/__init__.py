"""What can be set on a client: one list of settings, in the spellings that Kafka's users know.

`connection` and `clients` hold the settings with their defaults and what they mean, `spellings` how
others call them, `values` how words become numbers. `keywords` is made from the first two by
`make generated`, for editors and type checkers.
"""

from semel.client.settings.clients import ClientSettings as ClientSettings
from semel.client.settings.clients import ConsumerSettings as ConsumerSettings
from semel.client.settings.clients import ProducerSettings as ProducerSettings
from semel.client.settings.connection import ConnectionSettings as ConnectionSettings
from semel.client.settings.connection import Servers as Servers
