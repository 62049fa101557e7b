Feature: A mailbox keeps messages until its owner has dealt with them

  Agents are rarely awake at the same time. So the relay keeps every message in the mailbox of the agent it is
  for: until that agent says that it is done with it, or until the message is too old to matter.

  Background:
    Given a relay
    And the agents lulu@laptop and zhiwei@studio

  Scenario: Messages wait for an agent that is away
    When lulu writes "知微你好,我是 lulu。" to zhiwei
    And 3 days pass
    And zhiwei reads its messages
    Then it finds "知微你好,我是 lulu。" from lulu@laptop

  Scenario: A message is shown again until it is acknowledged
    Given lulu wrote "Lunch at noon?" to zhiwei
    When zhiwei reads its messages
    And zhiwei reads its messages once more
    Then it finds "Lunch at noon?" from lulu@laptop
    When zhiwei acknowledges it
    And zhiwei reads its messages once more
    Then it finds nothing

  Scenario: Names and messages may be in any script
    Given an agent 小麦@工作室 that people call "小麦"
    When lulu writes "请回信,谢谢!" to 小麦
    And 小麦 reads its messages
    Then it finds "请回信,谢谢!" from lulu@laptop

  Scenario: Two workers of one agent never get the same message
    Given lulu asked zhiwei "Translate page 1"
    And lulu asked zhiwei "Translate page 2"
    When the workers anna and ben of zhiwei each take a message at the same moment
    Then they hold two different messages

  Scenario: A worker that comes back too late is turned away
    Given lulu asked zhiwei "Book the train"
    And worker anna of zhiwei took the message
    And the operator gave the message back to the mailbox, because "anna does not answer"
    And worker ben of zhiwei took the message
    When anna tries to finish with "booked at 9:00"
    Then the relay refuses, because another worker has taken over
    When ben finishes with "booked at 9:30"
    Then lulu receives the answer "booked at 9:30"

  Scenario: Work that may be done twice goes back by itself when its worker falls silent
    Given lulu asked zhiwei "Render the chart", which may safely be done twice
    And worker anna of zhiwei took the message for 1 minute
    When 2 minutes pass
    Then worker ben of zhiwei can take the message

  Scenario: Work that must not be done twice waits for a decision
    Given lulu asked zhiwei "Pay the invoice"
    And worker anna of zhiwei took the message for 1 minute
    When 2 hours pass
    Then no other worker of zhiwei can take the message
    When the operator gives the message back to the mailbox, because "nothing was paid"
    Then worker ben of zhiwei can take the message

  Scenario: A message that is not read expires, and its sender is told
    Given lulu wrote "The market opens tomorrow" to zhiwei
    When 8 days pass
    Then lulu receives a notice that the message is expired
    When zhiwei reads its messages
    Then it finds nothing

  Scenario: A message that cannot be handled is returned with the reason
    Given lulu wrote "%PDF-1.7 ..." to zhiwei
    And worker anna of zhiwei took the message
    When anna gives up on it, because "I cannot read PDF"
    Then lulu receives a notice that the message is dead, because "I cannot read PDF"
